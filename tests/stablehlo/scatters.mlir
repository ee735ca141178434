//! tolerance: reduction
//! meshes: 1 2 3
module @jit_scatters attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x6xf32>, %arg1: tensor<4xi32>, %arg2: tensor<4x6xf32>, %arg3: tensor<8xf32>, %arg4: tensor<8xi32>) -> (tensor<8x6xf32> {jax.result_info = "result[0]"}, tensor<8x6xf32> {jax.result_info = "result[1]"}, tensor<8x6xf32> {jax.result_info = "result[2]"}, tensor<4x6xf32> {jax.result_info = "result[3]"}, tensor<5xi1> {jax.result_info = "result[4]"}, tensor<8x6xf32> {jax.result_info = "result[5]"}) {
    %c = stablehlo.constant dense<[[1, 2], [6, 4], [0, 1], [7, 0]]> : tensor<4x2xi32>
    %c_0 = stablehlo.constant dense<[[0], [3], [1], [0]]> : tensor<4x1xi32>
    %c_1 = stablehlo.constant dense<[0, 0, 3]> : tensor<3xi32>
    %c_2 = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %c_4 = stablehlo.constant dense<8> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<4xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<4xi1>, tensor<4xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
    %7 = "stablehlo.scatter"(%arg0, %5, %6) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
      %48 = stablehlo.sine %arg5 : tensor<f32>
      stablehlo.return %48 : tensor<f32>
    }) : (tensor<8x6xf32>, tensor<4x1xi32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %8 = stablehlo.slice %arg2 [0:4, 0:4] : (tensor<4x6xf32>) -> tensor<4x4xf32>
    %9 = stablehlo.reshape %8 : (tensor<4x4xf32>) -> tensor<4x2x2xf32>
    %10 = "stablehlo.scatter"(%arg0, %c, %9) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
      %48 = stablehlo.minimum %arg5, %arg6 : tensor<f32>
      stablehlo.return %48 : tensor<f32>
    }) : (tensor<8x6xf32>, tensor<4x2xi32>, tensor<4x2x2xf32>) -> tensor<8x6xf32>
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %11 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<8xi32>
    %12 = stablehlo.compare LT, %arg4, %11, SIGNED : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
    %c_6 = stablehlo.constant dense<6> : tensor<i32>
    %13 = stablehlo.broadcast_in_dim %c_6, dims = [] : (tensor<i32>) -> tensor<8xi32>
    %14 = stablehlo.add %arg4, %13 : tensor<8xi32>
    %15 = stablehlo.select %12, %14, %arg4 : tensor<8xi1>, tensor<8xi32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [0] : (tensor<8xi32>) -> tensor<8x1xi32>
    %17 = "stablehlo.scatter"(%arg0, %16, %arg3) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>, unique_indices = true}> ({
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
      %48 = stablehlo.add %arg5, %arg6 : tensor<f32>
      stablehlo.return %48 : tensor<f32>
    }) : (tensor<8x6xf32>, tensor<8x1xi32>, tensor<8xf32>) -> tensor<8x6xf32>
    %18 = stablehlo.slice %arg0 [0:4, 0:6] : (tensor<8x6xf32>) -> tensor<4x6xf32>
    %c_7 = stablehlo.constant dense<0> : tensor<i32>
    %19 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %20 = stablehlo.compare LT, %arg1, %19, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %c_8 = stablehlo.constant dense<6> : tensor<i32>
    %21 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %22 = stablehlo.add %arg1, %21 : tensor<4xi32>
    %23 = stablehlo.select %20, %22, %arg1 : tensor<4xi1>, tensor<4xi32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %c_9 = stablehlo.constant dense<0> : tensor<1xi32>
    %c_10 = stablehlo.constant dense<2147483647> : tensor<i32>
    %25 = stablehlo.broadcast_in_dim %c_10, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %26 = stablehlo.minimum %c_9, %25 : tensor<1xi32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [1] : (tensor<1xi32>) -> tensor<4x1xi32>
    %c_11 = stablehlo.constant dense<0> : tensor<i32>
    %28 = stablehlo.broadcast_in_dim %c_11, dims = [] : (tensor<i32>) -> tensor<4x1xi32>
    %29 = stablehlo.clamp %28, %24, %27 : tensor<4x1xi32>
    %30 = "stablehlo.scatter"(%18, %29, %arg2) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>, unique_indices = true}> ({
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
      stablehlo.return %arg6 : tensor<f32>
    }) : (tensor<4x6xf32>, tensor<4x1xi32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %c_12 = stablehlo.constant dense<false> : tensor<i1>
    %31 = stablehlo.broadcast_in_dim %c_12, dims = [] : (tensor<i1>) -> tensor<5xi1>
    %c_13 = stablehlo.constant dense<0> : tensor<i32>
    %32 = stablehlo.broadcast_in_dim %c_13, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %33 = stablehlo.compare LT, %arg1, %32, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %c_14 = stablehlo.constant dense<5> : tensor<i32>
    %34 = stablehlo.broadcast_in_dim %c_14, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %35 = stablehlo.add %arg1, %34 : tensor<4xi32>
    %36 = stablehlo.select %33, %35, %arg1 : tensor<4xi1>, tensor<4xi32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %c_15 = stablehlo.constant dense<true> : tensor<i1>
    %38 = stablehlo.broadcast_in_dim %c_15, dims = [] : (tensor<i1>) -> tensor<4xi1>
    %39 = "stablehlo.scatter"(%31, %37, %38) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg5: tensor<i1>, %arg6: tensor<i1>):
      stablehlo.return %arg6 : tensor<i1>
    }) : (tensor<5xi1>, tensor<4x1xi32>, tensor<4xi1>) -> tensor<5xi1>
    %c_16 = stablehlo.constant dense<0> : tensor<i32>
    %40 = stablehlo.broadcast_in_dim %c_16, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %41 = stablehlo.compare LT, %c_1, %40, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %c_17 = stablehlo.constant dense<5> : tensor<i32>
    %42 = stablehlo.broadcast_in_dim %c_17, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %43 = stablehlo.add %c_1, %42 : tensor<3xi32>
    %44 = stablehlo.select %41, %43, %c_1 : tensor<3xi1>, tensor<3xi32>
    %45 = stablehlo.broadcast_in_dim %44, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
    %46 = "stablehlo.scatter"(%39, %45, %c_2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg5: tensor<i1>, %arg6: tensor<i1>):
      %48 = stablehlo.minimum %arg5, %arg6 : tensor<i1>
      stablehlo.return %48 : tensor<i1>
    }) : (tensor<5xi1>, tensor<3x1xi32>, tensor<3xi1>) -> tensor<5xi1>
    %47 = "stablehlo.scatter"(%arg0, %c_0, %arg2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
      %48 = stablehlo.maximum %arg5, %arg6 : tensor<f32>
      stablehlo.return %48 : tensor<f32>
    }) : (tensor<8x6xf32>, tensor<4x1xi32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    return %7, %10, %17, %30, %46, %47 : tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>, tensor<4x6xf32>, tensor<5xi1>, tensor<8x6xf32>
  }
}
