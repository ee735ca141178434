//! tolerance: reduction
//! meshes: 1 2
module @jit_integers attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<6xi32>, %arg1: tensor<6xi32>, %arg2: tensor<3xui8>, %arg3: tensor<6xf32>) -> (tensor<6xi32> {jax.result_info = "result[0]"}, tensor<6xi32> {jax.result_info = "result[1]"}, tensor<6xi32> {jax.result_info = "result[2]"}, tensor<6xi32> {jax.result_info = "result[3]"}, tensor<6xi32> {jax.result_info = "result[4]"}, tensor<6xi32> {jax.result_info = "result[5]"}, tensor<6xi32> {jax.result_info = "result[6]"}, tensor<3xui8> {jax.result_info = "result[7]"}, tensor<3xui8> {jax.result_info = "result[8]"}, tensor<6xi32> {jax.result_info = "result[9]"}, tensor<6xf32> {jax.result_info = "result[10]"}, tensor<6xf32> {jax.result_info = "result[11]"}, tensor<6xf32> {jax.result_info = "result[12]"}, tensor<6xf32> {jax.result_info = "result[13]"}, tensor<6xi32> {jax.result_info = "result[14]"}, tensor<6xf32> {jax.result_info = "result[15]"}, tensor<6xi32> {jax.result_info = "result[16]"}, tensor<3xui8> {jax.result_info = "result[17]"}, tensor<6xi32> {jax.result_info = "result[18]"}, tensor<6xi32> {jax.result_info = "result[19]"}, tensor<6xf32> {jax.result_info = "result[20]"}, tensor<16xf32> {jax.result_info = "result[21]"}) {
    %c = stablehlo.constant dense<3> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %1 = stablehlo.shift_right_logical %arg0, %0 : tensor<6xi32>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %3 = stablehlo.shift_right_arithmetic %arg0, %2 : tensor<6xi32>
    %c_1 = stablehlo.constant dense<2> : tensor<i32>
    %4 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %5 = stablehlo.shift_left %arg0, %4 : tensor<6xi32>
    %6 = stablehlo.divide %arg0, %arg1 : tensor<6xi32>
    %7 = stablehlo.remainder %arg0, %arg1 : tensor<6xi32>
    %8 = call @floor_divide(%arg0, %arg1) : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
    %9 = call @remainder(%arg0, %arg1) : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
    %c_2 = stablehlo.constant dense<7> : tensor<i32>
    %10 = call @floor_divide_0(%arg2, %c_2) : (tensor<3xui8>, tensor<i32>) -> tensor<3xui8>
    %11 = stablehlo.popcnt %arg2 : tensor<3xui8>
    %12 = stablehlo.count_leading_zeros %arg0 : tensor<6xi32>
    %cst = stablehlo.constant dense<3.000000e-01> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %14 = stablehlo.remainder %arg3, %13 : tensor<6xf32>
    %cst_3 = stablehlo.constant dense<2.500000e+00> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %16 = stablehlo.multiply %arg3, %15 : tensor<6xf32>
    %17 = stablehlo.round_nearest_afz %16 : tensor<6xf32>
    %cst_4 = stablehlo.constant dense<2.500000e+00> : tensor<f32>
    %18 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %19 = stablehlo.multiply %arg3, %18 : tensor<6xf32>
    %20 = call @round(%19) : (tensor<6xf32>) -> tensor<6xf32>
    %21 = stablehlo.convert %arg0 : (tensor<6xi32>) -> tensor<6xf32>
    %cst_5 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %22 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %23 = stablehlo.multiply %arg3, %22 : tensor<6xf32>
    %24 = stablehlo.convert %23 : (tensor<6xf32>) -> tensor<6xi32>
    %cst_6 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %25 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %26 = stablehlo.multiply %25, %arg3 : tensor<6xf32>
    %27 = chlo.next_after %arg3, %26 : tensor<6xf32>, tensor<6xf32> -> tensor<6xf32>
    %28 = stablehlo.xor %arg0, %arg1 : tensor<6xi32>
    %29 = stablehlo.not %arg2 : tensor<3xui8>
    %30 = stablehlo.and %arg0, %arg1 : tensor<6xi32>
    %31 = stablehlo.or %arg0, %arg1 : tensor<6xi32>
    %32 = stablehlo.reduce_precision %arg3, format = e5m10 : tensor<6xf32>
    %cst_7 = stablehlo.constant dense<9.000000e+00> : tensor<f32>
    %33 = stablehlo.pad %arg3, %cst_7, low = [1], high = [-1], interior = [2] : (tensor<6xf32>, tensor<f32>) -> tensor<16xf32>
    return %1, %3, %5, %6, %7, %8, %9, %10, %11, %12, %14, %17, %20, %21, %24, %27, %28, %29, %30, %31, %32, %33 : tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<3xui8>, tensor<3xui8>, tensor<6xi32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xi32>, tensor<6xf32>, tensor<6xi32>, tensor<3xui8>, tensor<6xi32>, tensor<6xi32>, tensor<6xf32>, tensor<16xf32>
  }
  func.func private @floor_divide(%arg0: tensor<6xi32>, %arg1: tensor<6xi32>) -> tensor<6xi32> {
    %0 = stablehlo.divide %arg0, %arg1 : tensor<6xi32>
    %1 = stablehlo.sign %arg0 : tensor<6xi32>
    %2 = stablehlo.sign %arg1 : tensor<6xi32>
    %3 = stablehlo.compare NE, %1, %2, SIGNED : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
    %4 = stablehlo.remainder %arg0, %arg1 : tensor<6xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %5 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %6 = stablehlo.compare NE, %4, %5, SIGNED : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
    %7 = stablehlo.and %3, %6 : tensor<6xi1>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %8 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %9 = stablehlo.subtract %0, %8 : tensor<6xi32>
    %10 = call @_where(%7, %9, %0) : (tensor<6xi1>, tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
    return %10 : tensor<6xi32>
  }
  func.func private @_where(%arg0: tensor<6xi1>, %arg1: tensor<6xi32>, %arg2: tensor<6xi32>) -> tensor<6xi32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<6xi1>, tensor<6xi32>
    return %0 : tensor<6xi32>
  }
  func.func private @remainder(%arg0: tensor<6xi32>, %arg1: tensor<6xi32>) -> tensor<6xi32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %1 = stablehlo.compare EQ, %arg1, %0, SIGNED : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %3 = call @_where(%1, %2, %arg1) : (tensor<6xi1>, tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
    %4 = stablehlo.remainder %arg0, %3 : tensor<6xi32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %5 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %6 = stablehlo.compare NE, %4, %5, SIGNED : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %7 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %8 = stablehlo.compare LT, %4, %7, SIGNED : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %9 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %10 = stablehlo.compare LT, %3, %9, SIGNED : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
    %11 = stablehlo.compare NE, %8, %10, UNSIGNED : (tensor<6xi1>, tensor<6xi1>) -> tensor<6xi1>
    %12 = stablehlo.and %11, %6 : tensor<6xi1>
    %13 = stablehlo.add %4, %3 : tensor<6xi32>
    %14 = stablehlo.select %12, %13, %4 : tensor<6xi1>, tensor<6xi32>
    return %14 : tensor<6xi32>
  }
  func.func private @floor_divide_0(%arg0: tensor<3xui8>, %arg1: tensor<i32>) -> tensor<3xui8> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<ui8>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<ui8>) -> tensor<3xui8>
    %2 = stablehlo.divide %arg0, %1 : tensor<3xui8>
    return %2 : tensor<3xui8>
  }
  func.func private @round(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
