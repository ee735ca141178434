//! tolerance: reduction
//! meshes: 1 2 3
module @jit_indexing attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<10x6xf32>, %arg1: tensor<5xi32>, %arg2: tensor<5x6xf32>) -> (tensor<5x6xf32> {jax.result_info = "result[0]"}, tensor<4xf32> {jax.result_info = "result[1]"}, tensor<10x6xf32> {jax.result_info = "result[2]"}, tensor<10x6xf32> {jax.result_info = "result[3]"}, tensor<5x4x3xf32> {jax.result_info = "result[4]"}, tensor<10x6xf32> {jax.result_info = "result[5]"}, tensor<5x6xf32> {jax.result_info = "result[6]"}, tensor<10x6xf32> {jax.result_info = "result[7]"}, tensor<10x3xf32> {jax.result_info = "result[8]"}, tensor<3x6xf32> {jax.result_info = "result[9]"}) {
    %c = stablehlo.constant dense<[0, 5, 2, 2]> : tensor<4xi32>
    %0 = stablehlo.slice %arg1 [0:4] : (tensor<5xi32>) -> tensor<4xi32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %2 = stablehlo.compare LT, %0, %1, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %c_1 = stablehlo.constant dense<10> : tensor<i32>
    %3 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %4 = stablehlo.add %0, %3 : tensor<4xi32>
    %5 = stablehlo.select %2, %4, %0 : tensor<4xi1>, tensor<4xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %7 = stablehlo.compare LT, %c, %6, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %c_3 = stablehlo.constant dense<6> : tensor<i32>
    %8 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %9 = stablehlo.add %c, %8 : tensor<4xi32>
    %10 = stablehlo.select %7, %9, %c : tensor<4xi1>, tensor<4xi32>
    %11 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %12 = stablehlo.broadcast_in_dim %10, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %13 = stablehlo.concatenate %11, %12, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
    %14 = "stablehlo.gather"(%arg0, %13) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<10x6xf32>, tensor<4x2xi32>) -> tensor<4xf32>
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %15 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %16 = stablehlo.compare LT, %arg1, %15, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %c_5 = stablehlo.constant dense<10> : tensor<i32>
    %17 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %18 = stablehlo.add %arg1, %17 : tensor<5xi32>
    %19 = stablehlo.select %16, %18, %arg1 : tensor<5xi1>, tensor<5xi32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [0] : (tensor<5xi32>) -> tensor<5x1xi32>
    %21 = "stablehlo.scatter"(%arg0, %20, %arg2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %103 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %103 : tensor<f32>
    }) : (tensor<10x6xf32>, tensor<5x1xi32>, tensor<5x6xf32>) -> tensor<10x6xf32>
    %c_6 = stablehlo.constant dense<0> : tensor<i32>
    %22 = stablehlo.broadcast_in_dim %c_6, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %23 = stablehlo.compare LT, %arg1, %22, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %c_7 = stablehlo.constant dense<10> : tensor<i32>
    %24 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %25 = stablehlo.add %arg1, %24 : tensor<5xi32>
    %26 = stablehlo.select %23, %25, %arg1 : tensor<5xi1>, tensor<5xi32>
    %c_8 = stablehlo.constant dense<2> : tensor<i32>
    %27 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %28 = stablehlo.convert %27 : tensor<5xi32>
    %29 = stablehlo.broadcast_in_dim %26, dims = [0] : (tensor<5xi32>) -> tensor<5x1xi32>
    %30 = stablehlo.broadcast_in_dim %28, dims = [0] : (tensor<5xi32>) -> tensor<5x1xi32>
    %31 = stablehlo.concatenate %29, %30, dim = 1 : (tensor<5x1xi32>, tensor<5x1xi32>) -> tensor<5x2xi32>
    %cst = stablehlo.constant dense<7.000000e+00> : tensor<f32>
    %32 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %33 = "stablehlo.scatter"(%21, %31, %32) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      stablehlo.return %arg4 : tensor<f32>
    }) : (tensor<10x6xf32>, tensor<5x2xi32>, tensor<5xf32>) -> tensor<10x6xf32>
    %c_9 = stablehlo.constant dense<0> : tensor<i32>
    %34 = stablehlo.broadcast_in_dim %c_9, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %35 = stablehlo.compare LT, %arg1, %34, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %c_10 = stablehlo.constant dense<10> : tensor<i32>
    %36 = stablehlo.broadcast_in_dim %c_10, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %37 = stablehlo.add %arg1, %36 : tensor<5xi32>
    %38 = stablehlo.select %35, %37, %arg1 : tensor<5xi1>, tensor<5xi32>
    %39 = stablehlo.broadcast_in_dim %38, dims = [0] : (tensor<5xi32>) -> tensor<5x1xi32>
    %40 = "stablehlo.scatter"(%arg0, %39, %arg2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %103 = stablehlo.maximum %arg3, %arg4 : tensor<f32>
      stablehlo.return %103 : tensor<f32>
    }) : (tensor<10x6xf32>, tensor<5x1xi32>, tensor<5x6xf32>) -> tensor<10x6xf32>
    %c_11 = stablehlo.constant dense<0> : tensor<i32>
    %41 = stablehlo.broadcast_in_dim %c_11, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %42 = stablehlo.compare LT, %arg1, %41, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %c_12 = stablehlo.constant dense<10> : tensor<i32>
    %43 = stablehlo.broadcast_in_dim %c_12, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %44 = stablehlo.add %arg1, %43 : tensor<5xi32>
    %45 = stablehlo.select %42, %44, %arg1 : tensor<5xi1>, tensor<5xi32>
    %c_13 = stablehlo.constant dense<0> : tensor<i32>
    %46 = stablehlo.broadcast_in_dim %c_13, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %47 = stablehlo.compare LT, %arg1, %46, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %c_14 = stablehlo.constant dense<6> : tensor<i32>
    %48 = stablehlo.broadcast_in_dim %c_14, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %49 = stablehlo.add %arg1, %48 : tensor<5xi32>
    %50 = stablehlo.select %47, %49, %arg1 : tensor<5xi1>, tensor<5xi32>
    %51 = stablehlo.broadcast_in_dim %45, dims = [0] : (tensor<5xi32>) -> tensor<5x1xi32>
    %52 = stablehlo.broadcast_in_dim %50, dims = [0] : (tensor<5xi32>) -> tensor<5x1xi32>
    %53 = stablehlo.concatenate %51, %52, dim = 1 : (tensor<5x1xi32>, tensor<5x1xi32>) -> tensor<5x2xi32>
    %54 = "stablehlo.gather"(%arg0, %53) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [0, 1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 4, 3>}> : (tensor<10x6xf32>, tensor<5x2xi32>) -> tensor<5x4x3xf32>
    %55 = stablehlo.slice %arg2 [0:2, 0:3] : (tensor<5x6xf32>) -> tensor<2x3xf32>
    %56 = stablehlo.slice %arg1 [0:1] : (tensor<5xi32>) -> tensor<1xi32>
    %57 = stablehlo.reshape %56 : (tensor<1xi32>) -> tensor<i32>
    %58 = stablehlo.slice %arg1 [1:2] : (tensor<5xi32>) -> tensor<1xi32>
    %59 = stablehlo.reshape %58 : (tensor<1xi32>) -> tensor<i32>
    %c_15 = stablehlo.constant dense<0> : tensor<i32>
    %60 = stablehlo.compare LT, %57, %c_15, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_16 = stablehlo.constant dense<10> : tensor<i32>
    %61 = stablehlo.add %57, %c_16 : tensor<i32>
    %62 = stablehlo.select %60, %61, %57 : tensor<i1>, tensor<i32>
    %c_17 = stablehlo.constant dense<0> : tensor<i32>
    %63 = stablehlo.compare LT, %59, %c_17, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_18 = stablehlo.constant dense<6> : tensor<i32>
    %64 = stablehlo.add %59, %c_18 : tensor<i32>
    %65 = stablehlo.select %63, %64, %59 : tensor<i1>, tensor<i32>
    %66 = stablehlo.dynamic_update_slice %arg0, %55, %62, %65 : (tensor<10x6xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<10x6xf32>
    %c_19 = stablehlo.constant dense<0> : tensor<i32>
    %67 = stablehlo.broadcast_in_dim %c_19, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %68 = stablehlo.compare LT, %arg1, %67, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %c_20 = stablehlo.constant dense<10> : tensor<i32>
    %69 = stablehlo.broadcast_in_dim %c_20, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %70 = stablehlo.add %arg1, %69 : tensor<5xi32>
    %71 = stablehlo.select %68, %70, %arg1 : tensor<5xi1>, tensor<5xi32>
    %72 = stablehlo.broadcast_in_dim %71, dims = [0] : (tensor<5xi32>) -> tensor<5x1xi32>
    %c_21 = stablehlo.constant dense<9> : tensor<1xi32>
    %c_22 = stablehlo.constant dense<0> : tensor<i32>
    %73 = stablehlo.broadcast_in_dim %c_22, dims = [] : (tensor<i32>) -> tensor<5x1xi32>
    %74 = stablehlo.compare GE, %72, %73, SIGNED : (tensor<5x1xi32>, tensor<5x1xi32>) -> tensor<5x1xi1>
    %75 = stablehlo.broadcast_in_dim %c_21, dims = [1] : (tensor<1xi32>) -> tensor<1x1xi32>
    %76 = stablehlo.broadcast_in_dim %75, dims = [0, 1] : (tensor<1x1xi32>) -> tensor<5x1xi32>
    %77 = stablehlo.compare LE, %72, %76, SIGNED : (tensor<5x1xi32>, tensor<5x1xi32>) -> tensor<5x1xi1>
    %78 = stablehlo.and %74, %77 : tensor<5x1xi1>
    %c_23 = stablehlo.constant dense<true> : tensor<i1>
    %79 = stablehlo.reduce(%78 init: %c_23) applies stablehlo.and across dimensions = [1] : (tensor<5x1xi1>, tensor<i1>) -> tensor<5xi1>
    %80 = "stablehlo.gather"(%arg0, %72) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 6>}> : (tensor<10x6xf32>, tensor<5x1xi32>) -> tensor<5x6xf32>
    %81 = stablehlo.broadcast_in_dim %79, dims = [0] : (tensor<5xi1>) -> tensor<5x6xi1>
    %cst_24 = stablehlo.constant dense<-1.000000e+00> : tensor<f32>
    %82 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<5x6xf32>
    %83 = stablehlo.select %81, %80, %82 : tensor<5x6xi1>, tensor<5x6xf32>
    %c_25 = stablehlo.constant dense<4> : tensor<i32>
    %84 = stablehlo.broadcast_in_dim %c_25, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %cst_26 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %85 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %86 = "stablehlo.scatter"(%arg0, %84, %85) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %103 = stablehlo.multiply %arg3, %arg4 : tensor<f32>
      stablehlo.return %103 : tensor<f32>
    }) : (tensor<10x6xf32>, tensor<1xi32>, tensor<6xf32>) -> tensor<10x6xf32>
    %c_27 = stablehlo.constant dense<8> : tensor<i32>
    %87 = stablehlo.broadcast_in_dim %c_27, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %c_28 = stablehlo.constant dense<1> : tensor<i32>
    %88 = stablehlo.broadcast_in_dim %c_28, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %89 = stablehlo.concatenate %87, %88, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %cst_29 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %90 = "stablehlo.scatter"(%86, %89, %cst_29) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1]>, unique_indices = true}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      stablehlo.return %arg4 : tensor<f32>
    }) : (tensor<10x6xf32>, tensor<2xi32>, tensor<f32>) -> tensor<10x6xf32>
    %91 = call @argsort(%arg0) : (tensor<10x6xf32>) -> tensor<10x6xi32>
    %92 = stablehlo.slice %91 [0:10, 0:3] : (tensor<10x6xi32>) -> tensor<10x3xi32>
    %93 = call @take_along_axis(%arg0, %92) : (tensor<10x6xf32>, tensor<10x3xi32>) -> tensor<10x3xf32>
    %c_30 = stablehlo.constant dense<0> : tensor<i32>
    %94 = stablehlo.broadcast_in_dim %c_30, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %95 = stablehlo.compare LT, %arg1, %94, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %c_31 = stablehlo.constant dense<10> : tensor<i32>
    %96 = stablehlo.broadcast_in_dim %c_31, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %97 = stablehlo.add %arg1, %96 : tensor<5xi32>
    %98 = stablehlo.select %95, %97, %arg1 : tensor<5xi1>, tensor<5xi32>
    %99 = stablehlo.broadcast_in_dim %98, dims = [0] : (tensor<5xi32>) -> tensor<5x1xi32>
    %100 = "stablehlo.gather"(%arg0, %99) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 6>}> : (tensor<10x6xf32>, tensor<5x1xi32>) -> tensor<5x6xf32>
    %101 = stablehlo.slice %arg0 [2:9:3, 0:6] : (tensor<10x6xf32>) -> tensor<3x6xf32>
    %102 = stablehlo.reverse %101, dims = [1] : tensor<3x6xf32>
    return %100, %14, %33, %40, %54, %66, %83, %90, %93, %102 : tensor<5x6xf32>, tensor<4xf32>, tensor<10x6xf32>, tensor<10x6xf32>, tensor<5x4x3xf32>, tensor<10x6xf32>, tensor<5x6xf32>, tensor<10x6xf32>, tensor<10x3xf32>, tensor<3x6xf32>
  }
  func.func private @argsort(%arg0: tensor<10x6xf32>) -> tensor<10x6xi32> {
    %0 = stablehlo.iota dim = 1 : tensor<10x6xi32>
    %1:2 = "stablehlo.sort"(%arg0, %0) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>, %arg3: tensor<i32>, %arg4: tensor<i32>):
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %2 = stablehlo.compare EQ, %arg1, %cst, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %3 = stablehlo.select %2, %cst_0, %arg1 : tensor<i1>, tensor<f32>
      %4 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_1 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %5 = stablehlo.select %4, %cst_1, %3 : tensor<i1>, tensor<f32>
      %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %6 = stablehlo.compare EQ, %arg2, %cst_2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %7 = stablehlo.select %6, %cst_3, %arg2 : tensor<i1>, tensor<f32>
      %8 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_4 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %9 = stablehlo.select %8, %cst_4, %7 : tensor<i1>, tensor<f32>
      %10 = stablehlo.compare LT, %5, %9, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %10 : tensor<i1>
    }) : (tensor<10x6xf32>, tensor<10x6xi32>) -> (tensor<10x6xf32>, tensor<10x6xi32>)
    return %1#1 : tensor<10x6xi32>
  }
  func.func private @take_along_axis(%arg0: tensor<10x6xf32>, %arg1: tensor<10x3xi32>) -> tensor<10x3xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<10x3xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<10x3xi32>, tensor<10x3xi32>) -> tensor<10x3xi1>
    %c_0 = stablehlo.constant dense<6> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<10x3xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<10x3xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<10x3xi1>, tensor<10x3xi32>
    %5 = stablehlo.reshape %4 : (tensor<10x3xi32>) -> tensor<10x3x1xi32>
    %c_1 = stablehlo.constant dense<5> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<10x3x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<10x3x1xi32>, tensor<10x3x1xi32>) -> tensor<10x3x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_1, dims = [2] : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<1x1x1xi32>) -> tensor<10x3x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<10x3x1xi32>, tensor<10x3x1xi32>) -> tensor<10x3x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<10x3x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.reduce(%11 init: %c_3) applies stablehlo.and across dimensions = [2] : (tensor<10x3x1xi1>, tensor<i1>) -> tensor<10x3xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<10x6xf32>, tensor<10x3x1xi32>) -> tensor<10x3xf32>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<10x3xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<10x3xi1>, tensor<10x3xf32>
    return %15 : tensor<10x3xf32>
  }
}
