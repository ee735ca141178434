; The last capture of a node counts.

; --- Names -----------------------------------------------------------------------------------------------------------

(identifier) @variable
(binding_identifier) @variable
(shorthand_field_identifier) @variable.member
(field_identifier) @variable.member

(parameter pattern: (binding_identifier) @variable.parameter)
(parameter pattern: (_ (binding_identifier) @variable.parameter))
(parameter pattern: (_ (_ (binding_identifier) @variable.parameter)))
(parameter pattern: (_ (_ (_ (binding_identifier) @variable.parameter))))
(keyword_argument name: (field_identifier) @variable.parameter)
(sharding_keyword name: (field_identifier) @variable.parameter)

(function_identifier) @function
(call function: (identifier) @function.call)
(call function: (field_expression field: (field_identifier) @function.method.call))

(constant_identifier) @constant
(size_identifier) @type.parameter
(type_identifier) @type
(element_type) @type.builtin
(suffix_identifier) @attribute
(axis_identifier) @attribute
(mesh_identifier) @module
(module_identifier) @module
(stage_identifier) @label

; --- Literals --------------------------------------------------------------------------------------------------------

(integer) @number
(float) @number.float
(boolean) @boolean
(none) @constant.builtin
(wildcard) @punctuation.special
(string) @string

(test_item name: (string) @string.special)
(import_item path: (string) @string.special)

(comment) @comment
(doc_comment) @comment.documentation

; --- Words -----------------------------------------------------------------------------------------------------------

["const" "let" "mesh" "devices" "test" "stage" "type"] @keyword
"fn" @keyword.function
["if" "else"] @keyword.conditional
["for" "while" "in" "step" "collect"] @keyword.repeat
["import" "as"] @keyword.import
["mut" "on" "stream" "auto" "explicit" "manual"] @keyword.modifier

; --- Operators and punctuation ---------------------------------------------------------------------------------------

[
  "||" "&&" "==" "!=" "<" "<=" ">" ">=" "|" "^" "&" "<<" ">>" "+" "-" "*" "/" "//" "%" "@" "!" "**"
  "=" "+=" "-=" "*=" "/=" "//=" "%=" "@=" "**=" "&=" "|=" "^=" "<<=" ">>=" "->"
] @operator

["(" ")" "[" "]" "{" "}" "P("] @punctuation.bracket
(size_parameters ["<" ">"] @punctuation.bracket)
(size_arguments ["<" ">"] @punctuation.bracket)
(lambda ["|" "||"] @punctuation.bracket)

["," ";" ":" "." ".."] @punctuation.delimiter
["?" (ellipsis)] @punctuation.special
