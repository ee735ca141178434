//! tolerance: reduction
//! meshes: 1 2
module @jit_bits attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<10xf32>) -> (tensor<10xf32> {jax.result_info = "result[0]"}, tensor<10xf32> {jax.result_info = "result[1]"}, tensor<10xf32> {jax.result_info = "result[2]"}, tensor<10xf32> {jax.result_info = "result[3]"}, tensor<10xf32> {jax.result_info = "result[4]"}, tensor<10xf32> {jax.result_info = "result[5]"}, tensor<10x4xui8> {jax.result_info = "result[6]"}, tensor<10xi32> {jax.result_info = "result[7]"}, tensor<10x2xui16> {jax.result_info = "result[8]"}, tensor<10xf32> {jax.result_info = "result[9]"}) {
    %0 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<10xf32>
    %1 = stablehlo.reduce_precision %arg0, format = e5m2 : tensor<10xf32>
    %2 = stablehlo.reduce_precision %arg0, format = e4m3 : tensor<10xf32>
    %3 = stablehlo.reduce_precision %arg0, format = e8m7 : tensor<10xf32>
    %4 = stablehlo.reduce_precision %arg0, format = e8m3 : tensor<10xf32>
    %5 = stablehlo.reduce_precision %arg0, format = e2m23 : tensor<10xf32>
    %6 = stablehlo.bitcast_convert %arg0 : (tensor<10xf32>) -> tensor<10x4xui8>
    %7 = stablehlo.bitcast_convert %6 : (tensor<10x4xui8>) -> tensor<10xi32>
    %8 = stablehlo.bitcast_convert %arg0 : (tensor<10xf32>) -> tensor<10x2xf16>
    %9 = stablehlo.bitcast_convert %8 : (tensor<10x2xf16>) -> tensor<10x2xui16>
    %10 = stablehlo.convert %arg0 : (tensor<10xf32>) -> tensor<10xbf16>
    %11 = stablehlo.reduce_precision %10, format = e5m3 : tensor<10xbf16>
    %12 = stablehlo.convert %11 : (tensor<10xbf16>) -> tensor<10xf32>
    return %0, %1, %2, %3, %4, %5, %6, %7, %9, %12 : tensor<10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<10x4xui8>, tensor<10xi32>, tensor<10x2xui16>, tensor<10xf32>
  }
}
