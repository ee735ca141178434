//! tolerance: reduction
//! meshes: 1 2
module @rare_forms attributes {mhlo.num_replicas = 1 : i32} {
  func.func private @own_tanh(%arg0: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<3xf32>
    return %0 : tensor<3xf32>
  }
  func.func private @unused(%arg0: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.custom_call @nowhere(%arg0) : (tensor<3xf32>) -> tensor<3xf32>
    return %0 : tensor<3xf32>
  }
  func.func public @main(%x: tensor<4x6xf32>, %v: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<6x4xf32>, tensor<2x2xf32>, tensor<5x3xf32>, tensor<8x17xf32>, tensor<f32>, tensor<2x6xf32>, tensor<4x2xf32>, tensor<10xi1>, tensor<4x6xf32>) {
    %0 = stablehlo.composite "own.tanh" %v {composite_attributes = {n = 1 : i32}, decomposition = @own_tanh, version = 1 : i32} : (tensor<3xf32>) -> tensor<3xf32>
    %1 = "stablehlo.map"(%0, %0) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %20 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %20 : tensor<f32>
    }) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %cst = stablehlo.constant dense_resource<own_numbers> : tensor<3xf32>
    %2 = stablehlo.multiply %v, %cst : tensor<3xf32>
    %c = stablehlo.constant dense<[6, 4]> : tensor<2xi32>
    %3 = stablehlo.dynamic_reshape %x, %c : (tensor<4x6xf32>, tensor<2xi32>) -> tensor<6x4xf32>
    %starts = stablehlo.constant dense<[0, 1]> : tensor<2xi32>
    %limits = stablehlo.constant dense<[4, 5]> : tensor<2xi32>
    %strides = stablehlo.constant dense<2> : tensor<2xi32>
    %4 = stablehlo.real_dynamic_slice %x, %starts, %limits, %strides : (tensor<4x6xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x2xf32>
    %5 = stablehlo.dynamic_broadcast_in_dim %v, %c, dims = [1] : (tensor<3xf32>, tensor<2xi32>) -> tensor<5x3xf32>
    %fill = stablehlo.constant dense<1.5> : tensor<f32>
    %6 = stablehlo.dynamic_pad %x, %fill, %starts, %limits, %starts : (tensor<4x6xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<8x17xf32>
    %7 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<4x6xf32>) -> tensor<i32>
    %8 = stablehlo.replica_id : tensor<ui32>
    %9 = stablehlo.convert %8 : (tensor<ui32>) -> tensor<i32>
    %10 = stablehlo.add %7, %9 : tensor<i32>
    %11 = stablehlo.convert %10 : (tensor<i32>) -> tensor<f32>
    %rows = stablehlo.constant dense<[[3], [0]]> : tensor<2x1xi32>
    %sizes = stablehlo.constant dense<[1, 6]> : tensor<2xi32>
    %12 = "stablehlo.dynamic_gather"(%x, %rows, %sizes) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false}> : (tensor<4x6xf32>, tensor<2x1xi32>, tensor<2xi32>) -> tensor<2x6xf32>
    %13:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 2 : i64, largest = true}, mhlo.version = 1 : i64} : (tensor<4x6xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)
    %bits = stablehlo.constant dense<"0xB502"> : tensor<10xi1>
    %none = stablehlo.constant dense<0.0> : tensor<f32>
    %ones = stablehlo.constant dense<1.0> : tensor<2x3xf32>
    %14 = "stablehlo.select_and_scatter"(%x, %ones, %none) <{padding = dense<0> : tensor<2x2xi64>, window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %20 = stablehlo.compare GE, %arg2, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %21 = sdy.sharding_constraint %20 <@empty_mesh, []> : tensor<i1>
      stablehlo.return %21 : tensor<i1>
    }, {
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %20 = stablehlo.add %arg2, %arg3 : tensor<f32>
      %21 = sdy.sharding_constraint %20 <@empty_mesh, []> : tensor<f32>
      stablehlo.return %21 : tensor<f32>
    }) : (tensor<4x6xf32>, tensor<2x3xf32>, tensor<f32>) -> tensor<4x6xf32>
    return %1, %2, %3, %4, %5, %6, %11, %12, %13#0, %bits, %14 : tensor<3xf32>, tensor<3xf32>, tensor<6x4xf32>, tensor<2x2xf32>, tensor<5x3xf32>, tensor<8x17xf32>, tensor<f32>, tensor<2x6xf32>, tensor<4x2xf32>, tensor<10xi1>, tensor<4x6xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      own_numbers: "0x040000000000803F0000004000004040"
    }
  }
#-}
