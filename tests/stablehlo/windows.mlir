//! tolerance: reduction
//! meshes: 1 2 3
module @jit_windows attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x6x5xf32>, %arg1: tensor<f32>, %arg2: tensor<4xui8>, %arg3: tensor<4x4xf32>) -> (tensor<4x3x5xf32> {jax.result_info = "result[0]"}, tensor<4x3x5xf32> {jax.result_info = "result[1]"}, tensor<4x2x5xf32> {jax.result_info = "result[2]"}, tensor<4x2x5xi32> {jax.result_info = "result[3]"}, tensor<4x5x2xf32> {jax.result_info = "result[4]"}, tensor<4x11x5xf32> {jax.result_info = "result[5]"}, tensor<5x5xf32> {jax.result_info = "result[6]"}, tensor<ui8> {jax.result_info = "result[7]"}, tensor<ui8> {jax.result_info = "result[8]"}, tensor<ui8> {jax.result_info = "result[9]"}, tensor<4xf32> {jax.result_info = "result[10]"}, tensor<4xi32> {jax.result_info = "result[11]"}, tensor<4x4xcomplex<f32>> {jax.result_info = "result[12]"}, tensor<complex<f32>> {jax.result_info = "result[13]"}, tensor<4xcomplex<f32>> {jax.result_info = "result[14]"}) {
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x6x5xf32>
    %1 = stablehlo.multiply %0, %arg0 : tensor<4x6x5xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %2:2 = "stablehlo.reduce_window"(%arg0, %1, %cst_0, %cst_1) <{base_dilations = array<i64: 1, 1, 1>, padding = dense<[[0, 0], [0, 0], [1, 1]]> : tensor<3x2xi64>, window_dilations = array<i64: 1, 1, 1>, window_dimensions = array<i64: 1, 2, 3>, window_strides = array<i64: 1, 2, 1>}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>, %arg6: tensor<f32>, %arg7: tensor<f32>):
      %55 = stablehlo.add %arg4, %arg6 : tensor<f32>
      %56 = stablehlo.maximum %arg5, %arg7 : tensor<f32>
      stablehlo.return %55, %56 : tensor<f32>, tensor<f32>
    }) : (tensor<4x6x5xf32>, tensor<4x6x5xf32>, tensor<f32>, tensor<f32>) -> (tensor<4x3x5xf32>, tensor<4x3x5xf32>)
    %3 = stablehlo.iota dim = 1 : tensor<4x6x5xi32>
    %cst_2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c = stablehlo.constant dense<-1> : tensor<i32>
    %4:2 = "stablehlo.reduce_window"(%arg0, %3, %cst_2, %c) <{base_dilations = array<i64: 1, 1, 1>, padding = dense<0> : tensor<3x2xi64>, window_dilations = array<i64: 1, 1, 1>, window_dimensions = array<i64: 1, 3, 1>, window_strides = array<i64: 1, 2, 1>}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<i32>, %arg6: tensor<f32>, %arg7: tensor<i32>):
      %55 = stablehlo.compare GT, %arg6, %arg4, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %56 = func.call @_where(%55, %arg6, %arg4) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      %57 = stablehlo.compare GT, %arg6, %arg4, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %58 = func.call @_where_0(%57, %arg7, %arg5) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      stablehlo.return %56, %58 : tensor<f32>, tensor<i32>
    }) : (tensor<4x6x5xf32>, tensor<4x6x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<4x2x5xf32>, tensor<4x2x5xi32>)
    %5 = "stablehlo.reduce_window"(%arg0, %arg1) <{base_dilations = array<i64: 1, 1, 1>, padding = dense<0> : tensor<3x2xi64>, window_dilations = array<i64: 1, 1, 1>, window_dimensions = array<i64: 1, 2, 2>, window_strides = array<i64: 1, 1, 2>}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %55 = stablehlo.add %arg4, %arg5 : tensor<f32>
      stablehlo.return %55 : tensor<f32>
    }) : (tensor<4x6x5xf32>, tensor<f32>) -> tensor<4x5x2xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %6 = "stablehlo.reduce_window"(%arg0, %cst_3) <{base_dilations = array<i64: 1, 2, 1>, padding = dense<[[0, 0], [1, 0], [0, 2]]> : tensor<3x2xi64>, window_dilations = array<i64: 1, 1, 2>, window_dimensions = array<i64: 1, 2, 2>, window_strides = array<i64: 1, 1, 1>}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %cst_18 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %55 = stablehlo.multiply %arg4, %cst_18 : tensor<f32>
      %cst_19 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %56 = stablehlo.add %cst_19, %55 : tensor<f32>
      %57 = stablehlo.multiply %arg5, %56 : tensor<f32>
      %58 = stablehlo.add %arg4, %57 : tensor<f32>
      stablehlo.return %58 : tensor<f32>
    }) : (tensor<4x6x5xf32>, tensor<f32>) -> tensor<4x11x5xf32>
    %7 = stablehlo.slice %arg0 [0:1, 0:1, 0:5] : (tensor<4x6x5xf32>) -> tensor<1x1x5xf32>
    %8 = stablehlo.reshape %7 : (tensor<1x1x5xf32>) -> tensor<5xf32>
    %9 = stablehlo.iota dim = 0 : tensor<5x5xi32>
    %10 = stablehlo.iota dim = 1 : tensor<5x5xi32>
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %11 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<5x5xi32>
    %12 = stablehlo.add %9, %11 : tensor<5x5xi32>
    %13 = stablehlo.compare EQ, %12, %10, SIGNED : (tensor<5x5xi32>, tensor<5x5xi32>) -> tensor<5x5xi1>
    %14 = stablehlo.convert %13 : (tensor<5x5xi1>) -> tensor<5x5xf32>
    %15 = stablehlo.slice %14 [0:5, 0:5] : (tensor<5x5xf32>) -> tensor<5x5xf32>
    %16 = stablehlo.convert %15 : tensor<5x5xf32>
    %17 = stablehlo.broadcast_in_dim %8, dims = [1] : (tensor<5xf32>) -> tensor<5x5xf32>
    %cst_5 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %18:2 = "stablehlo.reduce_window"(%17, %16, %cst_5, %cst_6) <{base_dilations = array<i64: 1, 1>, padding = dense<0> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>, %arg6: tensor<f32>, %arg7: tensor<f32>):
      %55 = stablehlo.compare GE, %arg4, %arg6, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %56 = stablehlo.select %55, %arg4, %arg6 : tensor<i1>, tensor<f32>
      %57 = stablehlo.select %55, %arg5, %arg7 : tensor<i1>, tensor<f32>
      stablehlo.return %56, %57 : tensor<f32>, tensor<f32>
    }) : (tensor<5x5xf32>, tensor<5x5xf32>, tensor<f32>, tensor<f32>) -> (tensor<5x4xf32>, tensor<5x4xf32>)
    %cst_7 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<5x4xf32>
    %20 = stablehlo.multiply %19, %18#1 : tensor<5x4xf32>
    %21 = stablehlo.iota dim = 0 : tensor<1x1xi32>
    %22 = stablehlo.iota dim = 1 : tensor<1x1xi32>
    %c_8 = stablehlo.constant dense<0> : tensor<i32>
    %23 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i32>) -> tensor<1x1xi32>
    %24 = stablehlo.add %21, %23 : tensor<1x1xi32>
    %25 = stablehlo.compare EQ, %24, %22, SIGNED : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi1>
    %26 = stablehlo.convert %25 : (tensor<1x1xi1>) -> tensor<1x1xf32>
    %27 = stablehlo.slice %26 [0:1, 0:1] : (tensor<1x1xf32>) -> tensor<1x1xf32>
    %28 = stablehlo.reshape %27 : (tensor<1x1xf32>) -> tensor<1xf32>
    %29 = stablehlo.convert %28 : tensor<1xf32>
    %30 = stablehlo.broadcast_in_dim %29, dims = [0] : (tensor<1xf32>) -> tensor<1x4xf32>
    %31 = stablehlo.broadcast_in_dim %20, dims = [0, 2] : (tensor<5x4xf32>) -> tensor<5x1x4xf32>
    %32 = stablehlo.broadcast_in_dim %30, dims = [1, 2] : (tensor<1x4xf32>) -> tensor<1x1x4xf32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [0, 1, 2] : (tensor<1x1x4xf32>) -> tensor<5x1x4xf32>
    %34 = stablehlo.multiply %33, %31 : tensor<5x1x4xf32>
    %35 = stablehlo.broadcast_in_dim %8, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
    %36 = stablehlo.broadcast_in_dim %35, dims = [1, 2] : (tensor<1x5xf32>) -> tensor<5x1x5xf32>
    %cst_9 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %37 = stablehlo.pad %36, %cst_9, low = [0, 0, 0], high = [0, 0, 0], interior = [0, 0, 0] : (tensor<5x1x5xf32>, tensor<f32>) -> tensor<5x1x5xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %38 = "stablehlo.select_and_scatter"(%37, %34, %cst_10) <{padding = dense<0> : tensor<3x2xi64>, window_dimensions = array<i64: 1, 1, 2>, window_strides = array<i64: 1, 1, 1>}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %55 = stablehlo.compare GE, %arg4, %arg5, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %55 : tensor<i1>
    }, {
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %55 = stablehlo.add %arg4, %arg5 : tensor<f32>
      stablehlo.return %55 : tensor<f32>
    }) : (tensor<5x1x5xf32>, tensor<5x1x4xf32>, tensor<f32>) -> tensor<5x1x5xf32>
    %39 = stablehlo.slice %38 [0:5, 0:1, 0:5] : (tensor<5x1x5xf32>) -> tensor<5x1x5xf32>
    %40 = stablehlo.slice %39 [0:5, 0:1, 0:5] : (tensor<5x1x5xf32>) -> tensor<5x1x5xf32>
    %41 = stablehlo.reshape %40 : (tensor<5x1x5xf32>) -> tensor<5x5xf32>
    %42 = stablehlo.transpose %41, dims = [1, 0] : (tensor<5x5xf32>) -> tensor<5x5xf32>
    %43 = stablehlo.slice %42 [0:5, 0:5] : (tensor<5x5xf32>) -> tensor<5x5xf32>
    %c_11 = stablehlo.constant dense<255> : tensor<ui8>
    %44 = stablehlo.reduce(%arg2 init: %c_11) applies stablehlo.and across dimensions = [0] : (tensor<4xui8>, tensor<ui8>) -> tensor<ui8>
    %c_12 = stablehlo.constant dense<0> : tensor<ui8>
    %45 = stablehlo.reduce(%arg2 init: %c_12) applies stablehlo.or across dimensions = [0] : (tensor<4xui8>, tensor<ui8>) -> tensor<ui8>
    %c_13 = stablehlo.constant dense<0> : tensor<ui8>
    %46 = stablehlo.reduce(%arg2 init: %c_13) applies stablehlo.xor across dimensions = [0] : (tensor<4xui8>, tensor<ui8>) -> tensor<ui8>
    %47 = stablehlo.iota dim = 0 : tensor<4x4xi32>
    %cst_14 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c_15 = stablehlo.constant dense<0> : tensor<i32>
    %48:2 = stablehlo.reduce(%arg3 init: %cst_14), (%47 init: %c_15) across dimensions = [0] : (tensor<4x4xf32>, tensor<4x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
     reducer(%arg4: tensor<f32>, %arg6: tensor<f32>) (%arg5: tensor<i32>, %arg7: tensor<i32>)  {
      %55 = stablehlo.compare GT, %arg4, %arg6, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %56 = func.call @_where(%55, %arg4, %arg6) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      %57 = stablehlo.compare GT, %arg4, %arg6, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %58 = func.call @_where_0(%57, %arg5, %arg7) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      stablehlo.return %56, %58 : tensor<f32>, tensor<i32>
    }
    %49 = call @round(%arg3) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %50 = stablehlo.transpose %arg3, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %51 = stablehlo.complex %49, %50 : tensor<4x4xcomplex<f32>>
    %52 = call @sort(%51) : (tensor<4x4xcomplex<f32>>) -> tensor<4x4xcomplex<f32>>
    %cst_16 = stablehlo.constant dense<(1.000000e+00,0.000000e+00)> : tensor<complex<f32>>
    %53 = stablehlo.reduce(%51 init: %cst_16) applies stablehlo.multiply across dimensions = [0, 1] : (tensor<4x4xcomplex<f32>>, tensor<complex<f32>>) -> tensor<complex<f32>>
    %cst_17 = stablehlo.constant dense<(0.000000e+00,1.000000e+00)> : tensor<complex<f32>>
    %54 = stablehlo.reduce(%51 init: %cst_17) applies stablehlo.add across dimensions = [0] : (tensor<4x4xcomplex<f32>>, tensor<complex<f32>>) -> tensor<4xcomplex<f32>>
    return %2#0, %2#1, %4#0, %4#1, %5, %6, %43, %44, %45, %46, %48#0, %48#1, %52, %53, %54 : tensor<4x3x5xf32>, tensor<4x3x5xf32>, tensor<4x2x5xf32>, tensor<4x2x5xi32>, tensor<4x5x2xf32>, tensor<4x11x5xf32>, tensor<5x5xf32>, tensor<ui8>, tensor<ui8>, tensor<ui8>, tensor<4xf32>, tensor<4xi32>, tensor<4x4xcomplex<f32>>, tensor<complex<f32>>, tensor<4xcomplex<f32>>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<f32>
    return %0 : tensor<f32>
  }
  func.func private @_where_0(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @round(%arg0: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<4x4xf32>
    return %0 : tensor<4x4xf32>
  }
  func.func private @sort(%arg0: tensor<4x4xcomplex<f32>>) -> tensor<4x4xcomplex<f32>> {
    %0 = "stablehlo.sort"(%arg0) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<complex<f32>>, %arg2: tensor<complex<f32>>):
      %1 = stablehlo.real %arg1 : (tensor<complex<f32>>) -> tensor<f32>
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %2 = stablehlo.compare EQ, %1, %cst, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %3 = stablehlo.select %2, %cst_0, %1 : tensor<i1>, tensor<f32>
      %4 = stablehlo.compare NE, %1, %1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_1 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %5 = stablehlo.select %4, %cst_1, %3 : tensor<i1>, tensor<f32>
      %6 = stablehlo.imag %arg1 : (tensor<complex<f32>>) -> tensor<f32>
      %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %7 = stablehlo.compare EQ, %6, %cst_2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %8 = stablehlo.select %7, %cst_3, %6 : tensor<i1>, tensor<f32>
      %9 = stablehlo.compare NE, %6, %6, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_4 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %10 = stablehlo.select %9, %cst_4, %8 : tensor<i1>, tensor<f32>
      %11 = stablehlo.real %arg2 : (tensor<complex<f32>>) -> tensor<f32>
      %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %12 = stablehlo.compare EQ, %11, %cst_5, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %13 = stablehlo.select %12, %cst_6, %11 : tensor<i1>, tensor<f32>
      %14 = stablehlo.compare NE, %11, %11, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_7 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %15 = stablehlo.select %14, %cst_7, %13 : tensor<i1>, tensor<f32>
      %16 = stablehlo.imag %arg2 : (tensor<complex<f32>>) -> tensor<f32>
      %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %17 = stablehlo.compare EQ, %16, %cst_8, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %18 = stablehlo.select %17, %cst_9, %16 : tensor<i1>, tensor<f32>
      %19 = stablehlo.compare NE, %16, %16, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_10 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %20 = stablehlo.select %19, %cst_10, %18 : tensor<i1>, tensor<f32>
      %21 = stablehlo.compare LT, %10, %20, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %22 = stablehlo.compare LT, %5, %15, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %23 = stablehlo.compare EQ, %5, %15, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %24 = stablehlo.and %23, %21 : tensor<i1>
      %25 = stablehlo.or %22, %24 : tensor<i1>
      stablehlo.return %25 : tensor<i1>
    }) : (tensor<4x4xcomplex<f32>>) -> tensor<4x4xcomplex<f32>>
    return %0 : tensor<4x4xcomplex<f32>>
  }
}
