[
  (block)
  (struct)
  (struct_type)
  (struct_pattern)
  (list)
  (tuple)
  (parenthesized_expression)
  (arguments)
  (parameters)
  (index_expression)
  (sharding)
  (dimensions)
  (mesh_axes)
] @indent.begin

["}" ")" "]"] @indent.branch @indent.end
(comment) @indent.ignore
(doc_comment) @indent.ignore
