[
  (block)
  (struct)
  (struct_type)
  (list)
  (arguments)
  (parameters)
] @fold

(comment)+ @fold
(doc_comment)+ @fold
