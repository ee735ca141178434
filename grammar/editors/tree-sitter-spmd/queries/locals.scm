[
  (function_item)
  (test_item)
  (lambda)
  (block)
  (for_expression)
] @local.scope

(function_identifier) @local.definition.function
(constant_identifier) @local.definition.constant
(type_item name: (type_identifier) @local.definition.type)
(size_identifier) @local.definition.type
(parameter pattern: (binding_identifier) @local.definition.parameter)
(binding_identifier) @local.definition.var

(identifier) @local.reference
