//! tolerance: reduction
//! meshes: 1 2
module @jit_narrow attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x8xf32>, %arg1: tensor<8x5xf32>) -> (tensor<3x8xf32> {jax.result_info = "result[0]"}, tensor<3x5xf32> {jax.result_info = "result[1]"}, tensor<3x5xi32> {jax.result_info = "result[2]"}, tensor<8x5xf32> {jax.result_info = "result[3]"}, tensor<8x5xf32> {jax.result_info = "result[4]"}) {
    %0 = stablehlo.convert %arg0 : (tensor<3x8xf32>) -> tensor<3x8xbf16>
    %1 = stablehlo.convert %arg0 : (tensor<3x8xf32>) -> tensor<3x8xf8E4M3FN>
    %2 = stablehlo.convert %arg1 : (tensor<8x5xf32>) -> tensor<8x5xf8E4M3FN>
    %3 = stablehlo.dot_general %1, %2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x8xf8E4M3FN>, tensor<8x5xf8E4M3FN>) -> tensor<3x5xf32>
    %cst = stablehlo.constant dense<2.000000e+01> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x8xf32>
    %5 = stablehlo.multiply %arg0, %4 : tensor<3x8xf32>
    %6 = stablehlo.convert %5 : (tensor<3x8xf32>) -> tensor<3x8xi8>
    %cst_0 = stablehlo.constant dense<2.000000e+01> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<8x5xf32>
    %8 = stablehlo.multiply %arg1, %7 : tensor<8x5xf32>
    %9 = stablehlo.convert %8 : (tensor<8x5xf32>) -> tensor<8x5xi8>
    %10 = stablehlo.dot_general %6, %9, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x8xi8>, tensor<8x5xi8>) -> tensor<3x5xi32>
    %11 = stablehlo.convert %0 : (tensor<3x8xbf16>) -> tensor<3x8xf32>
    %12 = stablehlo.convert %arg1 : (tensor<8x5xf32>) -> tensor<8x5xf8E5M2>
    %13 = stablehlo.convert %12 : (tensor<8x5xf8E5M2>) -> tensor<8x5xf32>
    %14 = stablehlo.convert %arg1 : (tensor<8x5xf32>) -> tensor<8x5xf16>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f16>
    %15 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f16>) -> tensor<8x5xf16>
    %16 = stablehlo.add %14, %15 : tensor<8x5xf16>
    %17 = stablehlo.convert %16 : (tensor<8x5xf16>) -> tensor<8x5xf32>
    return %11, %3, %10, %13, %17 : tensor<3x8xf32>, tensor<3x5xf32>, tensor<3x5xi32>, tensor<8x5xf32>, tensor<8x5xf32>
  }
}
