// Tokens that depend on text around them: comments and `//`, numbers that end in a point, and the braces of types.
//
// `//` begins a comment or divides, by the rule of `grammar/src/division.rs`. Its second half is here: the rest of the line must continue an
// expression. Its first half follows from the parser, which says whether an operator can come next, and from the spaces before the token.
// One condition is left out, because a scanner sees no text before its position: a last operand that is a name must occur elsewhere in the
// file. Here `x // projected` always divides.

#include "tree_sitter/alloc.h"
#include "tree_sitter/parser.h"

#include <stdint.h>
#include <string.h>

// In the order of `externals` in `grammar.js`.
enum Symbol { COMMENT, DOC_COMMENT, FLOOR_DIVIDE, FLOOR_DIVIDE_ASSIGN, INTEGER, FLOAT, OPEN_SUFFIX, CLOSE_BRACE, ERROR_SENTINEL };

// The last token was a brace, and a comment follows on its line.
typedef struct {
  bool comment_follows;
} Scanner;

// A longer line contains no division.
enum { MAX_LINE = 4096, MAX_OPEN = 128 };

// ---------------------------------------------------------------------------------------------------------------------
// The tokens of the rest of a line
// ---------------------------------------------------------------------------------------------------------------------

typedef enum {
  END,
  MALFORMED,
  NAME,
  STREAM,
  ON,
  STEP,
  COLLECT,
  ELEMENT_TYPE,
  LITERAL,       // a number, string, bool or `None`
  POINT_NUMBER,  // a float that begins with its point
  FIELD_WORD,    // `type`, `mesh`, `manual`
  BLOCK_WORD,    // `if`, `for`, `while`
  OTHER_WORD,
  HOLE,  // `_`, `...`, `?`
  OPEN_PAREN,
  OPEN_BRACKET,
  OPEN_BRACE,
  CLOSE_PAREN,
  CLOSE_BRACKET,
  CLOSING_BRACE,
  COMMA,
  COLON,
  SEMICOLON,
  DOT,
  DOT_DOT,
  ARROW,
  MINUS,
  NOT,
  BAR,  // `|`, `||`
  GREATER,
  OPERATOR,
  ASSIGNMENT,
  SLASHES,         // `//`
  SLASHES_ASSIGN,  // `//=`
} Kind;

typedef struct {
  const char *text;  // ends with a zero
  unsigned at;
  unsigned start;  // of the last token
} Line;

static bool is_digit(int32_t c) { return c >= '0' && c <= '9'; }
static bool is_letter(int32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_of_word(int32_t c) { return is_letter(c) || is_digit(c); }
static bool is_blank(int32_t c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f'; }

static bool is_one_of(const char *word, unsigned length, const char *const *words) {
  for (; *words; words++) {
    if (strlen(*words) == length && memcmp(word, *words, length) == 0) return true;
  }
  return false;
}

static Kind word_kind(const char *word, unsigned length) {
  static const char *const LITERALS[] = {"true", "false", "None", 0};
  static const char *const FIELD_WORDS[] = {"type", "mesh", "manual", 0};
  static const char *const BLOCK_WORDS[] = {"if", "for", "while", 0};
  static const char *const OTHERS[] = {"const", "else", "fn", "import", "in", "let", "mut", 0};
  static const char *const ELEMENT_TYPES[] = {"bool", "i8",     "i16",    "i32", "i64",  "u8",  "u16", "u32",  "u64", "f8e4m3",
                                              "f8e5m2", "f16", "bf16", "f32", "f64", "c64", "c128", "key", 0};
  static const struct {
    const char *const words[2];
    Kind kind;
  } SINGLE[] = {{{"stream"}, STREAM}, {{"on"}, ON}, {{"step"}, STEP}, {{"collect"}, COLLECT}, {{"_"}, HOLE}};
  for (unsigned i = 0; i < sizeof SINGLE / sizeof *SINGLE; i++) {
    if (is_one_of(word, length, SINGLE[i].words)) return SINGLE[i].kind;
  }
  if (is_one_of(word, length, LITERALS)) return LITERAL;
  if (is_one_of(word, length, FIELD_WORDS)) return FIELD_WORD;
  if (is_one_of(word, length, BLOCK_WORDS)) return BLOCK_WORD;
  if (is_one_of(word, length, OTHERS)) return OTHER_WORD;
  return is_one_of(word, length, ELEMENT_TYPES) ? ELEMENT_TYPE : NAME;
}

static Kind number(Line *line) {
  const char *c = line->text + line->at;
  bool begins_with_point = *c == '.';
  while (is_digit(*c) || *c == '_') c++;
  if (*c == '.' && (is_digit(c[1]) || ((c[1] == 'e' || c[1] == 'E') && !begins_with_point))) {
    c++;
    while (is_digit(*c) || *c == '_') c++;
  }
  if (*c == 'e' || *c == 'E') {
    const char *digits = c[1] == '+' || c[1] == '-' ? c + 2 : c + 1;
    if (!is_digit(*digits)) return MALFORMED;
    for (c = digits; is_digit(*c) || *c == '_';) c++;
  } else if (c[-1] == '0' && c - line->text == line->at + 1 && is_letter(*c)) {
    while (is_of_word(*c)) c++;  // `0xff`; other letters are an error in any case
  }
  if (is_of_word(*c)) return MALFORMED;
  line->at = c - line->text;
  return begins_with_point ? POINT_NUMBER : LITERAL;
}

static Kind next(Line *line) {
  static const struct {
    const char *text;
    Kind kind;
  } SYMBOLS[] = {  // the longest first
      {"**=", ASSIGNMENT}, {"<<=", ASSIGNMENT}, {">>=", ASSIGNMENT}, {"//=", SLASHES_ASSIGN}, {"...", HOLE},   {"->", ARROW},
      {"..", DOT_DOT},     {"||", BAR},         {"&&", OPERATOR},    {"==", OPERATOR},        {"!=", OPERATOR}, {"<=", OPERATOR},
      {">=", OPERATOR},    {"<<", OPERATOR},    {">>", OPERATOR},    {"//", SLASHES},         {"**", OPERATOR}, {"+=", ASSIGNMENT},
      {"-=", ASSIGNMENT},  {"*=", ASSIGNMENT},  {"/=", ASSIGNMENT},  {"%=", ASSIGNMENT},      {"@=", ASSIGNMENT}, {"&=", ASSIGNMENT},
      {"|=", ASSIGNMENT},  {"^=", ASSIGNMENT},  {"(", OPEN_PAREN},   {")", CLOSE_PAREN},      {"[", OPEN_BRACKET}, {"]", CLOSE_BRACKET},
      {"{", OPEN_BRACE},   {"}", CLOSING_BRACE}, {",", COMMA},       {";", SEMICOLON},        {":", COLON},    {".", DOT},
      {"?", HOLE},         {"<", OPERATOR},     {">", GREATER},      {"|", BAR},              {"^", OPERATOR}, {"&", OPERATOR},
      {"+", OPERATOR},     {"-", MINUS},        {"*", OPERATOR},     {"/", OPERATOR},         {"%", OPERATOR}, {"@", OPERATOR},
      {"!", NOT},          {"=", ASSIGNMENT},
  };
  const char *text = line->text;
  while (is_blank(text[line->at])) line->at++;
  line->start = line->at;
  const char *c = text + line->at;
  if (!*c) return END;
  if (c[0] == 'P' && c[1] == '(') {
    line->at += 2;
    return OPEN_PAREN;
  }
  if (is_letter(*c)) {
    while (is_of_word(text[line->at])) line->at++;
    return word_kind(c, line->at - line->start);
  }
  if (is_digit(*c) || (*c == '.' && is_digit(c[1]))) return number(line);
  if (*c == '"') {
    for (c++; *c && *c != '"'; c++) {
      if (*c == '\\' && c[1]) c++;
    }
    line->at = c + 1 - text;
    return *c ? LITERAL : MALFORMED;
  }
  for (unsigned i = 0; i < sizeof SYMBOLS / sizeof *SYMBOLS; i++) {
    unsigned length = strlen(SYMBOLS[i].text);
    if (strncmp(c, SYMBOLS[i].text, length) == 0) {
      line->at += length;
      return SYMBOLS[i].kind;
    }
  }
  return MALFORMED;
}

// ---------------------------------------------------------------------------------------------------------------------
// Divisions
// ---------------------------------------------------------------------------------------------------------------------

static bool is_opening(Kind kind) { return kind == OPEN_PAREN || kind == OPEN_BRACKET || kind == OPEN_BRACE; }
static bool is_closing(Kind kind) { return kind == CLOSE_PAREN || kind == CLOSE_BRACKET || kind == CLOSING_BRACE; }
static bool closes(Kind open, Kind kind) { return is_opening(open) && kind == open + (CLOSE_PAREN - OPEN_PAREN); }

static bool begins_operand(Kind kind) {
  switch (kind) {
    case NAME: case STREAM: case ON: case STEP: case COLLECT: case ELEMENT_TYPE: case LITERAL: case POINT_NUMBER:
      return true;
    default:
      return false;
  }
}

// Whether the rest of a line is an operand and a valid continuation, up to the end of the line or another `//`.
static bool continues_expression(const char *rest) {
  Line line = {rest, 0, 0};
  // The open brackets of the line. Those outside are not known: whatever closes one is taken to close the right one.
  Kind open[MAX_OPEN];
  unsigned depth = 0;
  bool wants_operand = true, has_operand = false, may_assign = false;
  Kind earlier = SLASHES, previous = SLASHES;
  const char *first = rest;
  while (is_blank(*first)) first++;
  bool is_first_group = *first == '(';
  for (;;) {
    Kind kind = next(&line);
    if (kind == END) break;
    if (kind == MALFORMED) return false;
    if (kind == SLASHES || kind == SLASHES_ASSIGN) {
      if (wants_operand) return false;
      break;
    }
    if (kind == SEMICOLON) return !wants_operand && depth == 0;
    if (is_closing(kind)) {
      bool may_end = !wants_operand || closes(previous, kind) || previous == COMMA || previous == COLON;
      if (depth == 0) return may_end;
      if (!may_end || !closes(open[--depth], kind)) return false;
      has_operand = true;
      wants_operand = is_first_group = false;
    } else if (wants_operand) {
      bool is_first = previous == SLASHES;
      if (kind == MINUS || kind == NOT || (kind == BAR && !is_first) || (kind == COLON && !is_first) ||
          (kind == COMMA && previous == COLON)) {
        // An operand still follows.
      } else if (kind == FIELD_WORD && !is_first) {
        wants_operand = false;
      } else if (kind == BLOCK_WORD || kind == OPEN_BRACE) {
        return !is_first;
      } else if (kind == HOLE) {
        has_operand = true;
        wants_operand = false;
      } else if (kind == OPEN_BRACKET && is_first) {
        return false;  // nothing is divided by a list
      } else if (is_opening(kind)) {
        if (depth == MAX_OPEN) return false;
        open[depth++] = kind;
      } else if (begins_operand(kind)) {
        has_operand = true;
        wants_operand = false;
      } else {
        return false;
      }
    } else if (earlier == GREATER && previous == ON && begins_operand(kind)) {
      may_assign = true;  // `Layer<n // 2> on first`
    } else if ((kind == ELEMENT_TYPE || kind == NAME) && previous == STREAM) {
      // `stream f32[4]`
    } else if (kind == OPEN_BRACE) {
      return depth == 0 || previous == GREATER || (rest[line.at] && strchr("URVT", rest[line.at]));
    } else if (kind == OPEN_PAREN || kind == OPEN_BRACKET) {
      if (depth == MAX_OPEN) return false;
      open[depth++] = kind;
      wants_operand = true;
    } else if (kind == ASSIGNMENT) {
      // The keyword of another argument comes after a comma.
      if (depth == 0 && !may_assign && earlier != COMMA) return false;
      wants_operand = true;
    } else if (kind == COMMA && depth == 1 && is_first_group) {
      return false;  // nor by a tuple: `// (B, H)` is a shape
    } else if (kind == COMMA || kind == COLON || kind == DOT || kind == DOT_DOT || kind == ARROW || kind == ON || kind == STEP) {
      wants_operand = true;
    } else if (kind == POINT_NUMBER || kind == COLLECT) {
      // `t.0` looks like `t` and a float here.
    } else if (kind == GREATER) {
      // The end of `Layer<n // 2, m>`, or a comparison.
      Line after = line;
      Kind follows = next(&after);
      wants_operand = !(is_closing(follows) || follows == ASSIGNMENT || follows == SLASHES_ASSIGN || follows == COMMA ||
                        follows == SEMICOLON || follows == OPEN_BRACE || (follows == BAR && rest[after.start + 1] != '|'));
      may_assign |= !wants_operand;
    } else if (kind == OPERATOR || kind == MINUS || kind == BAR) {
      wants_operand = true;
    } else {
      return false;
    }
    earlier = previous;
    previous = kind;
  }
  return has_operand && previous != DOT;
}

// A comment, or a division. `is_even` says whether there is at most one space before it, on the line of the token before.
static bool scan_slashes(TSLexer *lexer, const bool *valid, bool may_divide, unsigned spaces) {
  lexer->advance(lexer, false);
  if (lexer->lookahead != '/') return false;
  lexer->advance(lexer, false);
  lexer->mark_end(lexer);
  char rest[MAX_LINE];
  unsigned length = 0;
  bool fits = true, is_assignment = false;
  if (lexer->lookahead == '=' && may_divide) {
    lexer->advance(lexer, false);
    is_assignment = lexer->lookahead != '=';
    if (is_assignment && valid[FLOOR_DIVIDE_ASSIGN]) lexer->mark_end(lexer);
    may_divide = is_assignment;
  }
  while (lexer->lookahead != '\n' && !lexer->eof(lexer)) {
    int32_t c = lexer->lookahead;
    if (length == MAX_LINE - 1) {
      fits = false;
    } else {
      rest[length++] = c > 0 && c < 127 ? (char)c : 127;  // a character of strings and comments only
    }
    lexer->advance(lexer, false);
  }
  rest[length] = 0;
  char first = rest[0], second = first ? rest[1] : 0;
  if (may_divide && fits && first != '/' && first != '!') {
    bool is_spaced = first == ' ' || first == '\t';
    bool is_even = spaces == 0 ? !is_spaced : spaces == 1 && first == ' ' && second != ' ' && second != '\t';
    if (is_even && is_assignment && (valid[FLOOR_DIVIDE] || valid[FLOOR_DIVIDE_ASSIGN])) {
      lexer->result_symbol = FLOOR_DIVIDE_ASSIGN;
      return valid[FLOOR_DIVIDE_ASSIGN];
    }
    if (is_even && !is_assignment && valid[FLOOR_DIVIDE] && continues_expression(rest)) {
      lexer->result_symbol = FLOOR_DIVIDE;
      return true;
    }
  }
  lexer->mark_end(lexer);
  lexer->result_symbol = first == '/' && second != '/' && !is_assignment ? DOC_COMMENT : COMMENT;
  return true;
}

// ---------------------------------------------------------------------------------------------------------------------
// Numbers and braces
// ---------------------------------------------------------------------------------------------------------------------

static void skip_digits(TSLexer *lexer) {
  while (is_digit(lexer->lookahead) || lexer->lookahead == '_') lexer->advance(lexer, false);
}

// `e-5`; false if the letter begins something else.
static bool scan_exponent(TSLexer *lexer) {
  lexer->advance(lexer, false);
  if (lexer->lookahead == '+' || lexer->lookahead == '-') lexer->advance(lexer, false);
  if (!is_digit(lexer->lookahead)) return false;
  skip_digits(lexer);
  return true;
}

static bool end_float(TSLexer *lexer) {
  if (is_of_word(lexer->lookahead)) return false;
  lexer->mark_end(lexer);
  lexer->result_symbol = FLOAT;
  return true;
}

static unsigned digit_value(int32_t c) {
  if (is_digit(c)) return c - '0';
  return c >= 'a' && c <= 'z' ? c - 'a' + 10 : c >= 'A' && c <= 'Z' ? c - 'A' + 10 : 99;
}

// `.5`, `1.`, `1e5`, `0xff`. `1.` is a float unless a name or another dot follows. An integer has at most 64 bits.
static bool scan_number(TSLexer *lexer, const bool *valid) {
  if (lexer->lookahead == '.') {
    lexer->advance(lexer, false);
    if (!is_digit(lexer->lookahead)) return false;
    skip_digits(lexer);
    if ((lexer->lookahead == 'e' || lexer->lookahead == 'E') && !scan_exponent(lexer)) return false;
    return end_float(lexer);
  }
  uint64_t value = 0;
  unsigned base = 10, digits = 0;
  bool overflows = false;
  for (bool is_first = true; is_of_word(lexer->lookahead); is_first = false) {
    int32_t c = lexer->lookahead;
    if (base == 10 && (c == 'e' || c == 'E')) {
      return valid[FLOAT] && scan_exponent(lexer) && end_float(lexer);
    }
    if (c != '_') {
      unsigned digit = digit_value(c);
      if (digit >= base) return false;
      overflows |= value > (UINT64_MAX - digit) / base;
      value = value * base + digit;
      digits++;
    }
    lexer->advance(lexer, false);
    if (is_first && c == '0') {
      c = lexer->lookahead | 32;
      base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 10;
      if (base != 10) {
        digits = 0;
        lexer->advance(lexer, false);
      }
    }
  }
  lexer->mark_end(lexer);
  if (base == 10 && lexer->lookahead == '.' && valid[FLOAT]) {
    lexer->advance(lexer, false);
    int32_t c = lexer->lookahead;
    if (is_digit(c)) {
      skip_digits(lexer);
      if ((lexer->lookahead == 'e' || lexer->lookahead == 'E') && !scan_exponent(lexer)) return false;
      return end_float(lexer);
    }
    if (c == 'e' || c == 'E') {
      if (scan_exponent(lexer)) return end_float(lexer);
    } else if (c != '.' && !is_letter(c) && c < 128) {
      return end_float(lexer);
    }
  }
  if (!valid[INTEGER] || digits == 0 || overflows) return false;
  lexer->result_symbol = INTEGER;
  return true;
}

// The brace of `f32[4]{U:Y}`.
static bool scan_suffix(TSLexer *lexer) {
  lexer->advance(lexer, false);
  lexer->mark_end(lexer);
  while (is_blank(lexer->lookahead)) lexer->advance(lexer, false);
  if (lexer->lookahead != 'U' && lexer->lookahead != 'R' && lexer->lookahead != 'V' && lexer->lookahead != 'T') return false;
  lexer->advance(lexer, false);
  while (is_blank(lexer->lookahead)) lexer->advance(lexer, false);
  lexer->result_symbol = OPEN_SUFFIX;
  return lexer->lookahead == ':';
}

// A brace before `//`, which then begins a comment. Other braces need no memory, and are tokens of the grammar.
static bool scan_closing_brace(TSLexer *lexer) {
  lexer->advance(lexer, false);
  lexer->mark_end(lexer);
  while (lexer->lookahead == ' ' || lexer->lookahead == '\t') lexer->advance(lexer, false);
  if (lexer->lookahead != '/') return false;
  lexer->advance(lexer, false);
  lexer->result_symbol = CLOSE_BRACE;
  return lexer->lookahead == '/';
}

bool tree_sitter_spmd_external_scanner_scan(void *payload, TSLexer *lexer, const bool *valid) {
  Scanner *scanner = payload;
  bool may_divide = !scanner->comment_follows && !valid[ERROR_SENTINEL];
  unsigned spaces = 0;
  for (; is_blank(lexer->lookahead); lexer->advance(lexer, true)) {
    spaces = lexer->lookahead == ' ' ? spaces + 1 : 2;
  }
  scanner->comment_follows = false;
  switch (lexer->lookahead) {
    case '/':
      return scan_slashes(lexer, valid, may_divide, spaces);
    case '{':
      return valid[OPEN_SUFFIX] && scan_suffix(lexer);
    case '}':
      scanner->comment_follows = valid[CLOSE_BRACE] && scan_closing_brace(lexer);
      return scanner->comment_follows;
    case '.':
      return valid[FLOAT] && scan_number(lexer, valid);
    default:
      return is_digit(lexer->lookahead) && (valid[INTEGER] || valid[FLOAT]) && scan_number(lexer, valid);
  }
}

void *tree_sitter_spmd_external_scanner_create(void) { return ts_calloc(1, sizeof(Scanner)); }

void tree_sitter_spmd_external_scanner_destroy(void *payload) { ts_free(payload); }

unsigned tree_sitter_spmd_external_scanner_serialize(void *payload, char *buffer) {
  buffer[0] = ((Scanner *)payload)->comment_follows;
  return 1;
}

void tree_sitter_spmd_external_scanner_deserialize(void *payload, const char *buffer, unsigned length) {
  ((Scanner *)payload)->comment_follows = length > 0 && buffer[0];
}
