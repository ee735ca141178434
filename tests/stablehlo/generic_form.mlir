//! tolerance: reduction
//! meshes: 2x4
"builtin.module"() <{sym_name = "jit_generic_form"}> ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["X"=2, "Y"=4]>, sym_name = "mesh"}> {stablehlo.mesh = {axes = [{name = "X", size = 2 : i64}, {name = "Y", size = 4 : i64}]}} : () -> ()
  "func.func"() <{arg_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {"Y"}]>}, {sdy.sharding = #sdy.sharding<@mesh, [{"Y"}, {}]>}], function_type = (tensor<8x12xf32>, tensor<12x6xf32>) -> (tensor<8x6xf32>, tensor<6xi32>, tensor<8x3xf32>, tensor<8x6xf32>, tensor<8x4xf32>, tensor<4x3xf32>, tensor<4x3xf32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}, {jax.result_info = "result[3]"}, {jax.result_info = "result[4]"}, {jax.result_info = "result[5]"}, {jax.result_info = "result[6]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg15: tensor<8x12xf32>, %arg16: tensor<12x6xf32>):
    %43 = "stablehlo.dot_general"(%arg15, %arg16) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<8x12xf32>, tensor<12x6xf32>) -> tensor<8x6xf32>
    %44 = "sdy.sharding_constraint"(%43) <{sharding = #sdy.sharding<@mesh, [{"X"}, {}]>}> : (tensor<8x6xf32>) -> tensor<8x6xf32>
    %45 = "sdy.manual_computation"(%arg15) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"X"}, {"Y"}]>]>, manual_axes = #sdy<manual_axes{"X", "Y"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"X"}, {}]>]>}> ({
    ^bb0(%arg27: tensor<4x3xf32>):
      %63 = "stablehlo.all_reduce"(%arg27) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg28: tensor<f32>, %arg29: tensor<f32>):
        %73 = "stablehlo.add"(%arg28, %arg29) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%73) : (tensor<f32>) -> ()
      }) : (tensor<4x3xf32>) -> tensor<4x3xf32>
      %64 = "stablehlo.constant"() <{value = dense<4> : tensor<ui32>}> : () -> tensor<ui32>
      %65 = "stablehlo.constant"() <{value = dense<2> : tensor<ui32>}> : () -> tensor<ui32>
      %66 = "stablehlo.partition_id"() : () -> tensor<ui32>
      %67 = "stablehlo.divide"(%66, %64) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
      %68 = "stablehlo.remainder"(%67, %65) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
      %69 = "stablehlo.convert"(%68) : (tensor<ui32>) -> tensor<i32>
      %70 = "stablehlo.convert"(%69) : (tensor<i32>) -> tensor<f32>
      %71 = "stablehlo.broadcast_in_dim"(%70) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x3xf32>
      %72 = "stablehlo.add"(%63, %71) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
      "sdy.return"(%72) : (tensor<4x3xf32>) -> ()
    }) : (tensor<8x12xf32>) -> tensor<8x3xf32>
    %46 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %47 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %48:4 = "stablehlo.while"(%44, %47, %46, %44) ({
    ^bb0(%arg23: tensor<8x6xf32>, %arg24: tensor<i32>, %arg25: tensor<i32>, %arg26: tensor<8x6xf32>):
      %61 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
      %62 = "stablehlo.compare"(%arg24, %61) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%62) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg19: tensor<8x6xf32>, %arg20: tensor<i32>, %arg21: tensor<i32>, %arg22: tensor<8x6xf32>):
      %58:2 = "func.call"(%arg19, %arg21, %arg22) <{callee = @closed_call}> : (tensor<8x6xf32>, tensor<i32>, tensor<8x6xf32>) -> (tensor<i32>, tensor<8x6xf32>)
      %59 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %60 = "stablehlo.add"(%arg20, %59) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%arg19, %60, %58#0, %58#1) : (tensor<8x6xf32>, tensor<i32>, tensor<i32>, tensor<8x6xf32>) -> ()
    }) : (tensor<8x6xf32>, tensor<i32>, tensor<i32>, tensor<8x6xf32>) -> (tensor<8x6xf32>, tensor<i32>, tensor<i32>, tensor<8x6xf32>)
    %49 = "func.call"(%44) <{callee = @sort}> : (tensor<8x6xf32>) -> tensor<8x6xf32>
    %50 = "func.call"(%44) <{callee = @argmax}> : (tensor<8x6xf32>) -> tensor<6xi32>
    %51 = "func.call"(%44) <{callee = @fft}> : (tensor<8x6xf32>) -> tensor<8x4xcomplex<f32>>
    %52 = "stablehlo.real"(%51) : (tensor<8x4xcomplex<f32>>) -> tensor<8x4xf32>
    %53 = "stablehlo.slice"(%44) <{limit_indices = array<i64: 8, 4>, start_indices = array<i64: 0, 1>, strides = array<i64: 2, 1>}> : (tensor<8x6xf32>) -> tensor<4x3xf32>
    %54 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %55 = "stablehlo.broadcast_in_dim"(%54) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<f32>
    %56 = "stablehlo.reduce_window"(%44, %55) <{base_dilations = array<i64: 1, 1>, padding = dense<0> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}> ({
    ^bb0(%arg17: tensor<f32>, %arg18: tensor<f32>):
      %57 = "stablehlo.add"(%arg17, %arg18) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%57) : (tensor<f32>) -> ()
    }) : (tensor<8x6xf32>, tensor<f32>) -> tensor<4x3xf32>
    "func.return"(%49, %50, %45, %48#3, %52, %53, %56) : (tensor<8x6xf32>, tensor<6xi32>, tensor<8x3xf32>, tensor<8x6xf32>, tensor<8x4xf32>, tensor<4x3xf32>, tensor<4x3xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<8x6xf32>, tensor<i32>, tensor<8x6xf32>) -> (tensor<i32>, tensor<8x6xf32>), res_attrs = [{}, {}], sym_name = "closed_call", sym_visibility = "private"}> ({
  ^bb0(%arg12: tensor<8x6xf32>, %arg13: tensor<i32>, %arg14: tensor<8x6xf32>):
    %31 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %32 = "stablehlo.add"(%arg13, %31) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %33 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %34 = "stablehlo.broadcast_in_dim"(%33) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8x6xf32>
    %35 = "stablehlo.compare"(%arg12, %34) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xi1>
    %36 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %37 = "stablehlo.broadcast_in_dim"(%36) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8x6xf32>
    %38 = "stablehlo.multiply"(%arg14, %37) : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %39 = "stablehlo.convert"(%arg13) : (tensor<i32>) -> tensor<f32>
    %40 = "stablehlo.broadcast_in_dim"(%39) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8x6xf32>
    %41 = "stablehlo.add"(%arg14, %40) : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %42 = "func.call"(%35, %38, %41) <{callee = @_where}> : (tensor<8x6xi1>, tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    "func.return"(%32, %42) : (tensor<i32>, tensor<8x6xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}, {}], function_type = (tensor<8x6xi1>, tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>, res_attrs = [{}], sym_name = "_where", sym_visibility = "private"}> ({
  ^bb0(%arg9: tensor<8x6xi1>, %arg10: tensor<8x6xf32>, %arg11: tensor<8x6xf32>):
    %30 = "stablehlo.select"(%arg9, %arg10, %arg11) : (tensor<8x6xi1>, tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    "func.return"(%30) : (tensor<8x6xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}], function_type = (tensor<8x6xf32>) -> tensor<8x6xf32>, res_attrs = [{}], sym_name = "sort", sym_visibility = "private"}> ({
  ^bb0(%arg6: tensor<8x6xf32>):
    %14 = "stablehlo.sort"(%arg6) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg7: tensor<f32>, %arg8: tensor<f32>):
      %15 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %16 = "stablehlo.compare"(%arg7, %15) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %17 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %18 = "stablehlo.select"(%16, %17, %arg7) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      %19 = "stablehlo.compare"(%arg7, %arg7) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %20 = "stablehlo.constant"() <{value = dense<0x7FC00000> : tensor<f32>}> : () -> tensor<f32>
      %21 = "stablehlo.select"(%19, %20, %18) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      %22 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %23 = "stablehlo.compare"(%arg8, %22) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %24 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %25 = "stablehlo.select"(%23, %24, %arg8) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      %26 = "stablehlo.compare"(%arg8, %arg8) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %27 = "stablehlo.constant"() <{value = dense<0x7FC00000> : tensor<f32>}> : () -> tensor<f32>
      %28 = "stablehlo.select"(%26, %27, %25) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      %29 = "stablehlo.compare"(%21, %28) <{compare_type = #stablehlo<comparison_type TOTALORDER>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%29) : (tensor<i1>) -> ()
    }) : (tensor<8x6xf32>) -> tensor<8x6xf32>
    "func.return"(%14) : (tensor<8x6xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<8x6xf32>) -> tensor<6xi32>, sym_name = "argmax", sym_visibility = "private"}> ({
  ^bb0(%arg1: tensor<8x6xf32>):
    %1 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<8x6xi32>
    %2 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %3 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %4:2 = "stablehlo.reduce"(%arg1, %1, %2, %3) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<i32>, %arg4: tensor<f32>, %arg5: tensor<i32>):
      %5 = "stablehlo.compare"(%arg2, %arg4) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = "stablehlo.compare"(%arg2, %arg2) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %7 = "stablehlo.or"(%5, %6) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %8 = "stablehlo.compare"(%arg2, %arg4) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %9 = "stablehlo.compare"(%arg3, %arg5) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %10 = "stablehlo.and"(%8, %9) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %11 = "stablehlo.or"(%7, %10) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %12 = "stablehlo.select"(%7, %arg2, %arg4) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      %13 = "stablehlo.select"(%11, %arg3, %arg5) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%12, %13) : (tensor<f32>, tensor<i32>) -> ()
    }) : (tensor<8x6xf32>, tensor<8x6xi32>, tensor<f32>, tensor<i32>) -> (tensor<6xf32>, tensor<6xi32>)
    "func.return"(%4#1) : (tensor<6xi32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}], function_type = (tensor<8x6xf32>) -> tensor<8x4xcomplex<f32>>, res_attrs = [{}], sym_name = "fft", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<8x6xf32>):
    %0 = "stablehlo.fft"(%arg0) <{fft_length = array<i64: 6>, fft_type = #stablehlo<fft_type RFFT>}> : (tensor<8x6xf32>) -> tensor<8x4xcomplex<f32>>
    "func.return"(%0) : (tensor<8x4xcomplex<f32>>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
