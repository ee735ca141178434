/**
 * @file The syntax of the spmd language for editors, in the order of `grammar/src/grammar.lalrpop`.
 *
 * `--test suite editors::` compares its trees with those of the compiler. Names have a kind for each role, so that the queries need not
 * look at positions: `identifier` is a name in an expression.
 */

/// <reference types="tree-sitter-cli/dsl" />

// Words that name no value. Fields and keyword arguments may have these names.
const RESERVED = [
  'const', 'else', 'false', 'fn', 'for', 'if', 'import', 'in', 'let', 'manual', 'mesh', 'mut', 'None', 'true', 'type', 'while',
];

const ELEMENT_TYPES = [
  'bool', 'i8', 'i16', 'i32', 'i64', 'u8', 'u16', 'u32', 'u64', 'f8e4m3', 'f8e5m2', 'f16', 'bf16', 'f32', 'f64', 'c64', 'c128', 'key',
];

// From the loosest to the tightest.
const PREC = { or: 1, and: 2, bitOr: 3, bitXor: 4, bitAnd: 5, shift: 6, sum: 7, product: 8, prefix: 9, power: 10, postfix: 11 };

const comma1 = (rule) => seq(rule, repeat(seq(',', rule)), optional(','));
const comma = (rule) => optional(comma1(rule));

export default grammar({
  name: 'spmd',

  word: ($) => $.identifier,

  // `src/scanner.c` has their rules. A closing brace is here because a comment may follow it where an operator could.
  externals: ($) => [
    $.comment,
    $.doc_comment,
    $._floor_divide,
    $._floor_divide_assign,
    $.integer,
    $.float,
    $._open_suffix,
    '}',
    $._error_sentinel,
  ],

  extras: ($) => [/[ \t\r\n\f]/, $.comment, $.doc_comment],

  reserved: {
    global: ($) => [...RESERVED, $.wildcard, $.element_type],
  },

  supertypes: ($) => [$._item, $._statement, $._expression, $._type, $._pattern],

  rules: {
    source_file: ($) => seq(optional($.stage_header), repeat($._item)),

    // The first line of a dump.
    stage_header: ($) => seq('stage', field('name', alias($.identifier, $.stage_identifier)), ';'),

    // --- Items ---------------------------------------------------------------------------------------------------------

    _item: ($) => choice($.mesh_item, $.const_item, $.type_item, $.import_item, $.test_item, $.function_item),

    mesh_item: ($) =>
      seq(
        'mesh',
        choice(
          seq(optional(field('name', $._mesh_name)), $.mesh_axes, optional($.devices)),
          seq(field('name', $._mesh_name), '=', field('of', $._mesh_name), '[', comma1($.fixed_axis), ']'),
        ),
        ';',
      ),

    mesh_axes: ($) => seq('(', comma($.mesh_axis), ')'),

    mesh_axis: ($) =>
      seq(field('name', $._axis_name), optional(seq(':', field('type', $.axis_type))), '=', field('size', $._expression)),

    axis_type: () => choice('auto', 'explicit', 'manual'),

    devices: ($) => seq('devices', '[', comma($._expression), ']'),

    fixed_axis: ($) => seq(field('name', $._axis_name), '=', field('coordinate', $._expression)),

    const_item: ($) =>
      seq('const', field('name', alias($.identifier, $.constant_identifier)), '=', field('value', $._expression), ';'),

    type_item: ($) => seq('type', field('name', $._type_name), optional($.size_parameters), '=', field('type', $._type), ';'),

    import_item: ($) =>
      seq('import', field('path', $.string), optional(seq('as', field('name', alias($.identifier, $.module_identifier)))), ';'),

    test_item: ($) => seq('test', field('name', $.string), field('body', $.block)),

    function_item: ($) =>
      seq(
        optional($.region),
        'fn',
        field('name', alias($.identifier, $.function_identifier)),
        optional($.size_parameters),
        field('parameters', $.parameters),
        optional(seq('->', field('result', $._type))),
        field('body', $.block),
      ),

    region: ($) => seq($.axis_type, optional(seq('(', comma($._axis_name), ')'))),

    size_parameters: ($) => seq('<', comma(alias($.identifier, $.size_identifier)), '>'),

    parameters: ($) => seq('(', comma($.parameter), ')'),

    parameter: ($) =>
      seq(field('pattern', $._pattern), optional($._annotation), optional(seq('=', field('default', $._expression)))),

    _annotation: ($) => seq(':', field('type', $._type)),

    // --- Types ---------------------------------------------------------------------------------------------------------

    _type: ($) => choice($._bare_type, $.placed_type, $.stream_type),

    placed_type: ($) => seq(field('type', $._bare_type), 'on', field('mesh', $._mesh_name)),

    // `stream` is the name of a type unless another type follows.
    stream_type: ($) =>
      seq('stream', field('type', choice($.array_type, alias($._array_of_parameter, $.array_type), $.named_type))),

    _bare_type: ($) =>
      choice(
        $.array_type,
        alias($._array_of_parameter, $.array_type),
        $.named_type,
        $.tuple_type,
        $.struct_type,
        $.parenthesized_type,
      ),

    // A bracket after an element type encloses sizes and no index.
    array_type: ($) =>
      prec.right(PREC.postfix, seq(field('element', $.element_type), optional($.dimensions), repeat($.type_suffix))),

    _array_of_parameter: ($) => seq(field('element', $._type_name), alias($._some_dimensions, $.dimensions)),

    element_type: () => token(choice(...ELEMENT_TYPES)),

    dimensions: ($) => seq('[', comma($.dimension), ']'),

    _some_dimensions: ($) => seq('[', comma1($.dimension), ']'),

    dimension: ($) => seq(field('size', $._size), optional(seq('@', $.axes))),

    axes: ($) =>
      seq(
        choice(
          $.wildcard,
          $.none,
          '?',
          $._axis_name,
          seq('(', $._axis_name, repeat(seq(',', $._axis_name)), optional(seq(',', optional('?'))), ')'),
        ),
        optional($.alignment),
      ),

    // In dumps only.
    alignment: ($) => seq('/', $.integer, choice('+', '-'), $.integer, optional(seq(':', $.integer))),

    type_suffix: ($) =>
      seq(alias($._open_suffix, '{'), field('letter', alias($.identifier, $.suffix_identifier)), ':', $._axis_list, '}'),

    _axis_list: ($) => choice($._axis_name, seq('(', comma1($._axis_name), ')')),

    named_type: ($) =>
      seq(optional(seq(field('module', $._module_name), '.')), field('name', $._type_name), optional($.size_arguments)),

    size_arguments: ($) => seq('<', comma($._size), '>'),

    tuple_type: ($) => seq('(', optional(seq($._type, ',', comma($._type))), ')'),

    parenthesized_type: ($) => seq('(', $._type, ')'),

    struct_type: ($) => seq('{', comma($.field_type), '}'),

    field_type: ($) => seq(field('name', $._field_name), ':', field('type', $._type)),

    _size: ($) =>
      choice(
        alias($._size_binary, $.binary_expression),
        alias($._size_unary, $.unary_expression),
        alias($._size_field, $.field_expression),
        alias($._size_parenthesized, $.parenthesized_expression),
        $.integer,
        $.identifier,
      ),

    _size_binary: ($) =>
      choice(
        prec.left(PREC.sum, seq(field('left', $._size), choice('+', '-'), field('right', $._size))),
        prec.left(PREC.product, seq(field('left', $._size), $._size_product_operator, field('right', $._size))),
      ),

    _size_product_operator: ($) => choice('*', '/', alias($._floor_divide, '//'), '%'),

    _size_unary: ($) => prec(PREC.prefix, seq('-', field('operand', $._size))),

    _size_field: ($) => seq(field('value', $.identifier), '.', field('field', alias($.identifier, $.field_identifier))),

    _size_parenthesized: ($) => seq('(', $._size, ')'),

    // --- Patterns ------------------------------------------------------------------------------------------------------

    _pattern: ($) =>
      choice(
        alias($.identifier, $.binding_identifier),
        $.wildcard,
        $.tuple_pattern,
        $.parenthesized_pattern,
        $.struct_pattern,
      ),

    tuple_pattern: ($) => seq('(', optional(seq($._pattern, ',', comma($._pattern))), ')'),

    parenthesized_pattern: ($) => seq('(', $._pattern, ')'),

    struct_pattern: ($) => seq('{', comma($.field_pattern), '}'),

    field_pattern: ($) =>
      choice(
        alias($.identifier, $.shorthand_field_identifier),
        seq(field('name', $._field_name), ':', field('pattern', $._pattern)),
      ),

    // --- Statements ----------------------------------------------------------------------------------------------------

    block: ($) => seq('{', repeat($._statement), optional(field('value', $._expression)), '}'),

    _statement: ($) => choice($.let_statement, $.assignment, $.expression_statement),

    let_statement: ($) =>
      seq(
        'let',
        optional('mut'),
        field('pattern', $._pattern),
        optional($._annotation),
        '=',
        field('value', $._expression),
        ';',
      ),

    assignment: ($) =>
      seq(
        choice(
          seq(field('target', choice($._place, $.wildcard, $.tuple, $.struct)), '='),
          seq(field('target', $._place), $._assignment_operator),
        ),
        field('value', $._expression),
        ';',
      ),

    _place: ($) =>
      choice($.identifier, $.index_expression, $.field_expression, $.tuple_field_expression, $.parenthesized_expression),

    _assignment_operator: ($) =>
      choice(
        '+=', '-=', '*=', '/=', alias($._floor_divide_assign, '//='), '%=', '@=', '**=', '&=', '|=', '^=', '<<=', '>>=',
      ),

    // An expression that ends in a brace is a whole statement: `if c { f(); } -x` is two.
    expression_statement: ($) => choice(seq($._expression, ';'), prec.right(1, seq($._block_like, optional(';')))),

    _block_like: ($) => choice($.block, $.if_expression, $.for_expression, $.while_expression),

    if_expression: ($) =>
      seq(
        'if',
        field('condition', $._expression),
        field('consequence', $.block),
        optional(seq('else', field('alternative', choice($.block, $.if_expression)))),
      ),

    for_expression: ($) =>
      seq(
        'for',
        field('pattern', $._pattern),
        'in',
        field('start', $._expression),
        '..',
        field('end', $._expression),
        optional(seq('step', field('step', $._expression))),
        optional('collect'),
        field('body', $.block),
      ),

    while_expression: ($) => seq('while', field('condition', $._expression), field('body', $.block)),

    // --- Expressions, loosest first ------------------------------------------------------------------------------------

    // A lambda is no operand, and comparisons do not chain; other operators are told apart by precedence.
    _expression: ($) => choice($.lambda, $._disjunct),

    lambda: ($) => seq(choice('||', seq('|', comma1(alias($._lambda_parameter, $.parameter)), '|')), field('body', $._expression)),

    _lambda_parameter: ($) => seq(field('pattern', $._pattern), optional($._annotation)),

    _disjunct: ($) =>
      choice(alias($._logical, $.binary_expression), alias($._comparison, $.binary_expression), $._operand),

    _logical: ($) => choice(binary($, prec.left, PREC.or, $._disjunct, '||'), binary($, prec.left, PREC.and, $._disjunct, '&&')),

    _comparison: ($) =>
      seq(field('left', $._operand), choice('==', '!=', '<', '<=', '>', '>='), field('right', $._operand)),

    _operand: ($) =>
      choice(
        alias($._arithmetic, $.binary_expression),
        $.unary_expression,
        $.call,
        $.index_expression,
        $.field_expression,
        $.tuple_field_expression,
        $._block_like,
        $.integer,
        $.float,
        $.boolean,
        $.none,
        $.string,
        $.wildcard,
        $.identifier,
        $.parenthesized_expression,
        $.tuple,
        $.list,
        $.struct,
        $.type_expression,
        $.sharding,
      ),

    _arithmetic: ($) =>
      choice(
        binary($, prec.left, PREC.bitOr, $._operand, '|'),
        binary($, prec.left, PREC.bitXor, $._operand, '^'),
        binary($, prec.left, PREC.bitAnd, $._operand, '&'),
        binary($, prec.left, PREC.shift, $._operand, choice('<<', '>>')),
        binary($, prec.left, PREC.sum, $._operand, choice('+', '-')),
        binary($, prec.left, PREC.product, $._operand, choice($._size_product_operator, '@')),
        binary($, prec.right, PREC.power, $._operand, '**'),
      ),

    unary_expression: ($) => prec(PREC.prefix, seq(choice('-', '!'), field('operand', $._operand))),

    call: ($) => prec(PREC.postfix, seq(field('function', $._operand), field('arguments', $.arguments))),

    arguments: ($) => seq('(', comma(choice($._expression, $.keyword_argument)), ')'),

    keyword_argument: ($) => seq(field('name', $._field_name), '=', field('value', $._expression)),

    index_expression: ($) => prec(PREC.postfix, seq(field('value', $._operand), '[', comma1($._index), ']')),

    _index: ($) => choice($._expression, $.slice, $.ellipsis),

    slice: ($) =>
      seq(
        optional(field('start', $._expression)),
        ':',
        optional(field('stop', $._expression)),
        optional(seq(':', optional(field('step', $._expression)))),
      ),

    ellipsis: () => '...',

    field_expression: ($) => prec(PREC.postfix, seq(field('value', $._operand), '.', field('field', $._field_name))),

    tuple_field_expression: ($) => prec(PREC.postfix, seq(field('value', $._operand), '.', field('index', $.integer))),

    parenthesized_expression: ($) => seq('(', $._expression, ')'),

    tuple: ($) => seq('(', optional(seq($._expression, ',', comma($._expression))), ')'),

    list: ($) => seq('[', comma($._expression), ']'),

    // `{ w }` is a block, `{ w, }` a struct.
    struct: ($) =>
      choice(
        seq('{', alias($._named_field_value, $.field_value), '}'),
        seq('{', $.field_value, ',', comma($.field_value), '}'),
      ),

    field_value: ($) => choice(alias($.identifier, $.shorthand_field_identifier), $._named_field_value),

    _named_field_value: ($) => seq(field('name', $._field_name), ':', field('value', $._expression)),

    type_expression: ($) => choice($.array_type, alias($._placed_array, $.placed_type)),

    _placed_array: ($) => seq(field('type', $.array_type), 'on', field('mesh', $._mesh_name)),

    sharding: ($) => seq('P(', comma(choice($.axes, $.sharding_keyword)), ')'),

    sharding_keyword: ($) => seq(field('name', alias($.identifier, $.field_identifier)), '=', $._axis_list),

    boolean: () => choice('true', 'false'),

    none: () => 'None',

    wildcard: () => '_',

    string: () => /"([^"\\\n]|\\[ntr0\\"])*"/,

    // --- Names ---------------------------------------------------------------------------------------------------------

    identifier: () => /[A-Za-z_][A-Za-z0-9_]*/,

    _mesh_name: ($) => alias($.identifier, $.mesh_identifier),

    _axis_name: ($) => alias($.identifier, $.axis_identifier),

    _type_name: ($) => choice(alias($.identifier, $.type_identifier), alias('stream', $.type_identifier)),

    _module_name: ($) => choice(alias($.identifier, $.module_identifier), alias('stream', $.module_identifier)),

    _field_name: ($) =>
      choice(
        alias($.identifier, $.field_identifier),
        alias($.element_type, $.field_identifier),
        ...RESERVED.map((word) => alias(word === 'None' ? $.none : word, $.field_identifier)),
      ),
  },
});

function binary($, associate, precedence, operand, operator) {
  return associate(precedence, seq(field('left', operand), operator, field('right', operand)));
}
