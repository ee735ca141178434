//! tolerance: reduction
//! meshes: 2x4
module @jit_parts_of_the_mesh attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["X"=2, "Y"=4]> {stablehlo.mesh = {axes = [{name = "X", size = 2 : i64}, {name = "Y", size = 4 : i64}]}}
  func.func public @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {"Y"}]>}) -> (tensor<8x16xf32> {jax.result_info = "result[0]"}, tensor<4x16xf32> {jax.result_info = "result[1]"}, tensor<8x16xf32> {jax.result_info = "result[2]"}, tensor<8x16xf32> {jax.result_info = "result[3]"}) {
    %0:2 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"X", ?}, {?}]>] out_shardings=[<@mesh, [{"X", ?}, {?}]>, <@mesh, [{?}, {?}]>] manual_axes={"X"} (%arg1: tensor<4x16xf32>) {
      %3 = func.call @"<lambda>"(%arg1) : (tensor<4x16xf32>) -> tensor<4x16xf32>
      %4 = "stablehlo.collective_permute"(%3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 4], [4, 0], [1, 5], [5, 1], [2, 6], [6, 2], [3, 7], [7, 3]]> : tensor<8x2xi64>}> : (tensor<4x16xf32>) -> tensor<4x16xf32>
      %5 = sdy.manual_computation() in_shardings=[] out_shardings=[<@mesh, []>] manual_axes={"Y"} () {
        %c = stablehlo.constant dense<4> : tensor<ui32>
        %c_0 = stablehlo.constant dense<2> : tensor<ui32>
        %13 = stablehlo.partition_id : tensor<ui32>
        %14 = stablehlo.divide %13, %c : tensor<ui32>
        %15 = stablehlo.remainder %14, %c_0 : tensor<ui32>
        %16 = stablehlo.convert %15 : (tensor<ui32>) -> tensor<i32>
        sdy.return %16 : tensor<i32>
      } : () -> tensor<i32>
      %6 = stablehlo.convert %5 : (tensor<i32>) -> tensor<f32>
      %7 = sdy.sharding_constraint %6 <@mesh, []> : tensor<f32>
      %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<f32>) -> tensor<4x16xf32>
      %9 = sdy.sharding_constraint %8 <@mesh, [{?}, {?}]> : tensor<4x16xf32>
      %10 = stablehlo.add %4, %9 : tensor<4x16xf32>
      %11 = sdy.sharding_constraint %10 <@mesh, [{?}, {?}]> : tensor<4x16xf32>
      %12 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
        %13 = stablehlo.add %arg2, %arg3 : tensor<f32>
        %14 = sdy.sharding_constraint %13 <@mesh, []> : tensor<f32>
        stablehlo.return %14 : tensor<f32>
      }) : (tensor<4x16xf32>) -> tensor<4x16xf32>
      sdy.return %11, %12 : tensor<4x16xf32>, tensor<4x16xf32>
    } : (tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<4x16xf32>)
    %1 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{?}, {"Y", ?}]>] out_shardings=[<@mesh, [{?}, {"Y", ?}]>] manual_axes={"Y"} (%arg1: tensor<8x4xf32>) {
      %3 = sdy.manual_computation() in_shardings=[] out_shardings=[<@mesh, []>] manual_axes={"X"} () {
        %c = stablehlo.constant dense<1> : tensor<ui32>
        %c_0 = stablehlo.constant dense<4> : tensor<ui32>
        %10 = stablehlo.partition_id : tensor<ui32>
        %11 = stablehlo.divide %10, %c : tensor<ui32>
        %12 = stablehlo.remainder %11, %c_0 : tensor<ui32>
        %13 = stablehlo.convert %12 : (tensor<ui32>) -> tensor<i32>
        sdy.return %13 : tensor<i32>
      } : () -> tensor<i32>
      %4 = stablehlo.convert %3 : (tensor<i32>) -> tensor<f32>
      %5 = sdy.sharding_constraint %4 <@mesh, []> : tensor<f32>
      %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
      %7 = sdy.sharding_constraint %6 <@mesh, [{?}, {?}]> : tensor<8x4xf32>
      %8 = stablehlo.multiply %arg1, %7 : tensor<8x4xf32>
      %9 = sdy.sharding_constraint %8 <@mesh, [{?}, {?}]> : tensor<8x4xf32>
      sdy.return %9 : tensor<8x4xf32>
    } : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %2 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"X"}, {"Y"}]>] out_shardings=[<@mesh, [{"X"}, {"Y"}]>] manual_axes={"X", "Y"} (%arg1: tensor<4x4xf32>) {
      %3 = "stablehlo.collective_permute"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 3], [1, 4], [2, 5], [3, 6], [4, 7], [5, 0], [6, 1], [7, 2]]> : tensor<8x2xi64>}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
      sdy.return %3 : tensor<4x4xf32>
    } : (tensor<8x16xf32>) -> tensor<8x16xf32>
    return %0#0, %0#1, %1, %2 : tensor<8x16xf32>, tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>
  }
  func.func private @"<lambda>"(%arg0: tensor<4x16xf32>) -> tensor<4x16xf32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{?}, {"Y", ?}]>] out_shardings=[<@mesh, [{?}, {"Y", ?}]>] manual_axes={"Y"} (%arg1: tensor<4x4xf32>) {
      %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
      %2 = stablehlo.multiply %arg1, %1 : tensor<4x4xf32>
      %3 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
        %5 = stablehlo.maximum %arg2, %arg3 : tensor<f32>
        stablehlo.return %5 : tensor<f32>
      }) : (tensor<4x4xf32>) -> tensor<4x4xf32>
      %4 = stablehlo.add %2, %3 : tensor<4x4xf32>
      sdy.return %4 : tensor<4x4xf32>
    } : (tensor<4x16xf32>) -> tensor<4x16xf32>
    return %0 : tensor<4x16xf32>
  }
}
