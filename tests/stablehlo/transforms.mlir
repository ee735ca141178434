//! tolerance: reduction
//! meshes: 1 2
module @jit_transforms attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x16xf32>) -> (tensor<4x16xcomplex<f32>> {jax.result_info = "result[0]"}, tensor<4x9xcomplex<f32>> {jax.result_info = "result[1]"}, tensor<4x16xf32> {jax.result_info = "result[2]"}, tensor<4x16xf32> {jax.result_info = "result[3]"}, tensor<4x16xcomplex<f32>> {jax.result_info = "result[4]"}, tensor<4x16xf32> {jax.result_info = "result[5]"}, tensor<4x16xcomplex<f32>> {jax.result_info = "result[6]"}, tensor<4x16xcomplex<f32>> {jax.result_info = "result[7]"}) {
    %0 = call @fft(%arg0) : (tensor<4x16xf32>) -> tensor<4x16xcomplex<f32>>
    %1 = call @fft_0(%arg0) : (tensor<4x16xf32>) -> tensor<4x9xcomplex<f32>>
    %2 = call @fft_0(%arg0) : (tensor<4x16xf32>) -> tensor<4x9xcomplex<f32>>
    %3 = call @fft_1(%2) : (tensor<4x9xcomplex<f32>>) -> tensor<4x16xf32>
    %cst = stablehlo.constant dense<(0.000000e+00,1.000000e+00)> : tensor<complex<f32>>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<complex<f32>>) -> tensor<4x16xcomplex<f32>>
    %5 = stablehlo.multiply %0, %4 : tensor<4x16xcomplex<f32>>
    %6 = call @fft_2(%5) : (tensor<4x16xcomplex<f32>>) -> tensor<4x16xcomplex<f32>>
    %7 = stablehlo.real %6 : (tensor<4x16xcomplex<f32>>) -> tensor<4x16xf32>
    %8 = stablehlo.real %0 : (tensor<4x16xcomplex<f32>>) -> tensor<4x16xf32>
    %9 = stablehlo.imag %0 : (tensor<4x16xcomplex<f32>>) -> tensor<4x16xf32>
    %10 = stablehlo.negate %9 : tensor<4x16xf32>
    %11 = stablehlo.complex %8, %10 : tensor<4x16xcomplex<f32>>
    %12 = stablehlo.abs %0 : (tensor<4x16xcomplex<f32>>) -> tensor<4x16xf32>
    %cst_0 = stablehlo.constant dense<(1.000000e+00,0.000000e+00)> : tensor<complex<f32>>
    %13 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<complex<f32>>) -> tensor<4x16xcomplex<f32>>
    %14 = stablehlo.add %13, %0 : tensor<4x16xcomplex<f32>>
    %15 = stablehlo.divide %0, %14 : tensor<4x16xcomplex<f32>>
    %cst_1 = stablehlo.constant dense<(1.000000e+01,0.000000e+00)> : tensor<complex<f32>>
    %16 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<complex<f32>>) -> tensor<4x16xcomplex<f32>>
    %17 = stablehlo.divide %0, %16 : tensor<4x16xcomplex<f32>>
    %18 = stablehlo.exponential %17 : tensor<4x16xcomplex<f32>>
    return %0, %1, %3, %7, %11, %12, %15, %18 : tensor<4x16xcomplex<f32>>, tensor<4x9xcomplex<f32>>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xcomplex<f32>>, tensor<4x16xf32>, tensor<4x16xcomplex<f32>>, tensor<4x16xcomplex<f32>>
  }
  func.func private @fft(%arg0: tensor<4x16xf32>) -> tensor<4x16xcomplex<f32>> {
    %0 = stablehlo.convert %arg0 : (tensor<4x16xf32>) -> tensor<4x16xcomplex<f32>>
    %1 = stablehlo.fft %0, type = FFT, length = [16] : (tensor<4x16xcomplex<f32>>) -> tensor<4x16xcomplex<f32>>
    return %1 : tensor<4x16xcomplex<f32>>
  }
  func.func private @fft_0(%arg0: tensor<4x16xf32>) -> tensor<4x9xcomplex<f32>> {
    %0 = stablehlo.fft %arg0, type = RFFT, length = [16] : (tensor<4x16xf32>) -> tensor<4x9xcomplex<f32>>
    return %0 : tensor<4x9xcomplex<f32>>
  }
  func.func private @fft_1(%arg0: tensor<4x9xcomplex<f32>>) -> tensor<4x16xf32> {
    %0 = stablehlo.fft %arg0, type = IRFFT, length = [16] : (tensor<4x9xcomplex<f32>>) -> tensor<4x16xf32>
    return %0 : tensor<4x16xf32>
  }
  func.func private @fft_2(%arg0: tensor<4x16xcomplex<f32>>) -> tensor<4x16xcomplex<f32>> {
    %0 = stablehlo.fft %arg0, type = IFFT, length = [4, 16] : (tensor<4x16xcomplex<f32>>) -> tensor<4x16xcomplex<f32>>
    return %0 : tensor<4x16xcomplex<f32>>
  }
}
