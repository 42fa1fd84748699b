#include "data/catalog/predicate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/utf8.h"

namespace shoal::data {
namespace {

enum class Operation : uint8_t { kAnd, kOr, kNot, kCompare, kIn, kIsNull };
enum class Comparison : uint8_t { kEqual, kUnequal, kLess, kLessEqual, kGreater, kGreaterEqual };
enum class Truth : uint8_t { kFalse, kUnknown, kTrue };

struct Literal {
  Cell cell;
  std::string text;  // that the cell refers to

  Cell value() const {
    return cell.kind == CellKind::kText ? Cell::Of(std::string_view(text)) : cell;
  }
};

bool IsNumber(CellKind kind) { return kind == CellKind::kInteger || kind == CellKind::kFloat; }

// long double has every int64 on the platforms of the project.
long double NumberOf(const Cell& cell) {
  return cell.kind == CellKind::kInteger ? static_cast<long double>(cell.integer)
                                         : static_cast<long double>(cell.number);
}

template <typename T>
int Sign(const T& a, const T& b) {
  return a < b ? -1 : (b < a ? 1 : 0);
}

// None: they cannot be compared.
std::optional<int> Order(const Cell& a, const Cell& b) {
  if (IsNumber(a.kind) && IsNumber(b.kind)) {
    const long double left = NumberOf(a);
    const long double right = NumberOf(b);
    if (left != left || right != right) return std::nullopt;
    return Sign(left, right);
  }
  if (a.kind != b.kind || a.kind == CellKind::kNull) return std::nullopt;
  if (a.kind == CellKind::kBool) return Sign(a.boolean, b.boolean);
  return Sign(a.text, b.text);
}

bool Holds(Comparison comparison, int order) {
  switch (comparison) {
    case Comparison::kEqual:
      return order == 0;
    case Comparison::kUnequal:
      return order != 0;
    case Comparison::kLess:
      return order < 0;
    case Comparison::kLessEqual:
      return order <= 0;
    case Comparison::kGreater:
      return order > 0;
    case Comparison::kGreaterEqual:
      break;
  }
  return order >= 0;
}

Truth Not(Truth truth) { return static_cast<Truth>(2 - static_cast<int>(truth)); }

}  // namespace

struct Predicate::Node {
  Operation operation = Operation::kAnd;
  Comparison comparison = Comparison::kEqual;
  size_t column = 0;
  std::vector<Literal> literals;
  std::vector<std::shared_ptr<const Node>> parts;
};

namespace {

using NodePtr = std::shared_ptr<const Predicate::Node>;

Truth CompareWith(const Cell& cell, Comparison comparison, const Literal& literal) {
  const std::optional<int> order = Order(cell, literal.value());
  if (!order) return Truth::kUnknown;
  return Holds(comparison, *order) ? Truth::kTrue : Truth::kFalse;
}

Truth Evaluate(const Predicate::Node& node, std::span<const Cell> row) {
  switch (node.operation) {
    case Operation::kAnd: {
      Truth all = Truth::kTrue;
      for (const NodePtr& part : node.parts) all = std::min(all, Evaluate(*part, row));
      return all;
    }
    case Operation::kOr: {
      Truth any = Truth::kFalse;
      for (const NodePtr& part : node.parts) any = std::max(any, Evaluate(*part, row));
      return any;
    }
    case Operation::kNot:
      return Not(Evaluate(*node.parts[0], row));
    case Operation::kCompare:
      return CompareWith(row[node.column], node.comparison, node.literals[0]);
    case Operation::kIn: {
      Truth any = Truth::kFalse;
      for (const Literal& literal : node.literals)
        any = std::max(any, CompareWith(row[node.column], Comparison::kEqual, literal));
      return any;
    }
    case Operation::kIsNull:
      break;
  }
  return row[node.column].kind == CellKind::kNull ? Truth::kTrue : Truth::kFalse;
}

// The truths that a condition can have in some rows: bit i is Truth i.
using Truths = unsigned;

constexpr Truths BitOf(Truth truth) { return 1U << static_cast<unsigned>(truth); }
constexpr Truths kAnyTruth = BitOf(Truth::kFalse) | BitOf(Truth::kUnknown) | BitOf(Truth::kTrue);
constexpr Truth kTruths[] = {Truth::kFalse, Truth::kUnknown, Truth::kTrue};

template <typename Join>
Truths JoinTruths(Truths a, Truths b, const Join& join) {
  Truths joined = 0;
  for (const Truth left : kTruths)
    for (const Truth right : kTruths)
      if ((a & BitOf(left)) != 0 && (b & BitOf(right)) != 0) joined |= BitOf(join(left, right));
  return joined;
}

Truths CompareRange(const CellRange& range, Comparison comparison, const Literal& literal) {
  const auto least = range.known ? Order(range.least, literal.value()) : std::nullopt;
  const auto most = range.known ? Order(range.most, literal.value()) : std::nullopt;
  if (!least || !most) return kAnyTruth;
  Truths truths = 0;
  const auto add = [&](int order) {
    truths |= BitOf(Holds(comparison, order) ? Truth::kTrue : Truth::kFalse);
  };
  if (*least < 0) add(-1);
  if (*least <= 0 && *most >= 0) add(0);
  if (*most > 0) add(1);
  // A NaN is in no range.
  if (range.may_be_null || range.least.kind == CellKind::kFloat) truths |= BitOf(Truth::kUnknown);
  return truths;
}

Truths EvaluateRanges(const Predicate::Node& node, std::span<const CellRange> columns) {
  const auto lower = [](Truth a, Truth b) { return std::min(a, b); };
  const auto higher = [](Truth a, Truth b) { return std::max(a, b); };
  Truths truths = 0;
  switch (node.operation) {
    case Operation::kAnd:
      truths = BitOf(Truth::kTrue);
      for (const NodePtr& part : node.parts)
        truths = JoinTruths(truths, EvaluateRanges(*part, columns), lower);
      return truths;
    case Operation::kOr:
      truths = BitOf(Truth::kFalse);
      for (const NodePtr& part : node.parts)
        truths = JoinTruths(truths, EvaluateRanges(*part, columns), higher);
      return truths;
    case Operation::kNot: {
      const Truths inside = EvaluateRanges(*node.parts[0], columns);
      for (const Truth truth : kTruths)
        if ((inside & BitOf(truth)) != 0) truths |= BitOf(Not(truth));
      return truths;
    }
    case Operation::kCompare:
      return CompareRange(columns[node.column], node.comparison, node.literals[0]);
    case Operation::kIn:
      truths = BitOf(Truth::kFalse);
      for (const Literal& literal : node.literals)
        truths = JoinTruths(truths, CompareRange(columns[node.column], Comparison::kEqual, literal),
                            higher);
      return truths;
    case Operation::kIsNull:
      break;
  }
  return BitOf(Truth::kFalse) |
         (columns[node.column].may_be_null ? BitOf(Truth::kTrue) : Truths{0});
}

enum class TokenKind : uint8_t { kEnd, kWord, kName, kText, kNumber, kSymbol };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;  // of a text or name without its quotes
  size_t column = 1;
};

bool IsWordStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

Status WrongAt(size_t column, const std::string& sentence) {
  return InvalidArgument(fmt::format("column {}: {}", column, sentence));
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<Token> Next() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
    Token token;
    token.column = at_ + 1;
    if (at_ == text_.size()) return token;
    const char c = text_[at_];
    if (IsWordStart(c)) return Word(std::move(token));
    if (IsDigit(c) || c == '-' || c == '+' || c == '.') return Number(std::move(token));
    if (c == '\'' || c == '"') return Quoted(std::move(token), c);
    return Symbol(std::move(token));
  }

 private:
  Result<Token> Word(Token token) {
    const size_t begin = at_;
    while (at_ < text_.size() && (IsWordStart(text_[at_]) || IsDigit(text_[at_]) ||
                                  text_[at_] == '.' || text_[at_] == '$'))
      ++at_;
    token.kind = TokenKind::kWord;
    token.text = text_.substr(begin, at_ - begin);
    return token;
  }

  Result<Token> Number(Token token) {
    const size_t begin = at_;
    while (at_ < text_.size() &&
           (IsWordStart(text_[at_]) || IsDigit(text_[at_]) || text_[at_] == '.' ||
            ((text_[at_] == '-' || text_[at_] == '+') &&
             (at_ == begin || text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E'))))
      ++at_;
    token.kind = TokenKind::kNumber;
    token.text = text_.substr(begin, at_ - begin);
    return token;
  }

  Result<Token> Quoted(Token token, char quote) {
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] != quote) {
        token.text += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == quote) {
        token.text += text_[at_++];
      } else {
        ++at_;
        token.kind = quote == '"' ? TokenKind::kName : TokenKind::kText;
        return token;
      }
    }
    return WrongAt(token.column, fmt::format("the quote {} is not closed", quote));
  }

  Result<Token> Symbol(Token token) {
    constexpr std::string_view kSymbols[] = {"!=", "<>", "<=", ">=", "=", "<", ">", "(", ")", ","};
    for (const std::string_view symbol : kSymbols) {
      if (!text_.substr(at_).starts_with(symbol)) continue;
      at_ += symbol.size();
      token.kind = TokenKind::kSymbol;
      token.text = symbol;
      return token;
    }
    return WrongAt(token.column,
                   "got " + EscapedUtf8(std::string(text_.substr(at_, 1))) +
                       ", expected a column, a literal or one of = != < <= > >= ( ) ,");
  }

  const std::string_view text_;
  size_t at_ = 0;
};

class PredicateParser {
 public:
  PredicateParser(std::string_view text, std::span<const TypedColumn> columns, size_t max_nodes)
      : lexer_(text), columns_(columns), max_nodes_(max_nodes) {}

  Result<NodePtr> Parse() {
    TRY(Advance());
    TRY_ASSIGN(NodePtr root, Any(0));
    if (token_.kind != TokenKind::kEnd) return Wrong("expected `and`, `or` or the end");
    return root;
  }
  std::vector<size_t> used() const { return used_; }

 private:
  Status Advance() {
    TRY_ASSIGN(token_, lexer_.Next());
    return Status::Ok();
  }
  Status Wrong(const std::string& expected) const {
    const std::string got =
        token_.kind == TokenKind::kEnd ? "the end" : EscapedUtf8(token_.text.substr(0, 60));
    return WrongAt(token_.column, "got " + got + ", " + expected);
  }
  bool IsWord(std::string_view word) const {
    return token_.kind == TokenKind::kWord && Lower(token_.text) == word;
  }
  bool IsSymbol(std::string_view symbol) const {
    return token_.kind == TokenKind::kSymbol && token_.text == symbol;
  }
  Status Count() {
    if (++nodes_ <= max_nodes_) return Status::Ok();
    return WrongAt(token_.column, fmt::format("the condition has more than {} parts", max_nodes_));
  }

  Result<NodePtr> Joined(size_t depth, Operation operation, std::string_view word) {
    TRY_ASSIGN(NodePtr first, operation == Operation::kOr ? All(depth) : One(depth));
    if (!IsWord(word)) return first;
    auto node = std::make_shared<Predicate::Node>();
    node->operation = operation;
    node->parts.push_back(std::move(first));
    while (IsWord(word)) {
      TRY(Advance());
      TRY_ASSIGN(NodePtr next, operation == Operation::kOr ? All(depth) : One(depth));
      node->parts.push_back(std::move(next));
    }
    TRY(Count());
    return NodePtr(std::move(node));
  }
  Result<NodePtr> Any(size_t depth) { return Joined(depth, Operation::kOr, "or"); }
  Result<NodePtr> All(size_t depth) { return Joined(depth, Operation::kAnd, "and"); }

  Result<NodePtr> One(size_t depth) {
    if (depth > kMaxPredicateDepth)
      return WrongAt(token_.column,
                     fmt::format("got more than {} parentheses and `not`s within each other",
                                 kMaxPredicateDepth));
    TRY(Count());
    if (IsWord("not")) {
      TRY(Advance());
      TRY_ASSIGN(NodePtr part, One(depth + 1));
      return Negated(std::move(part));
    }
    if (!IsSymbol("(")) return Condition();
    TRY(Advance());
    TRY_ASSIGN(NodePtr inside, Any(depth + 1));
    if (!IsSymbol(")")) return Wrong("expected `)`, `and` or `or`");
    TRY(Advance());
    return inside;
  }

  static NodePtr Negated(NodePtr part) {
    auto node = std::make_shared<Predicate::Node>();
    node->operation = Operation::kNot;
    node->parts.push_back(std::move(part));
    return node;
  }

  Result<size_t> Column() {
    if (token_.kind != TokenKind::kWord && token_.kind != TokenKind::kName)
      return Wrong("expected a column, `not` or `(`");
    const auto found = std::ranges::find(columns_, token_.text, &TypedColumn::name);
    if (found == columns_.end()) {
      std::string names;
      for (size_t i = 0; i < columns_.size() && i < 20; ++i)
        names += (i == 0 ? "" : ", ") + EscapedUtf8(columns_[i].name);
      return Wrong("expected a column of the table (" + names +
                   (columns_.size() > 20 ? ", …)" : ")"));
    }
    const auto column = static_cast<size_t>(found - columns_.begin());
    if (!std::ranges::binary_search(used_, column))
      used_.insert(std::ranges::upper_bound(used_, column), column);
    TRY(Advance());
    return column;
  }

  Result<NodePtr> Condition() {
    auto node = std::make_shared<Predicate::Node>();
    TRY_ASSIGN(node->column, Column());
    if (IsWord("is")) {
      TRY(Advance());
      const bool negated = IsWord("not");
      if (negated) TRY(Advance());
      if (!IsWord("null")) return Wrong("expected `null`");
      TRY(Advance());
      node->operation = Operation::kIsNull;
      return negated ? Negated(std::move(node)) : NodePtr(std::move(node));
    }
    const bool negated = IsWord("not");
    if (negated) TRY(Advance());
    if (IsWord("in")) {
      TRY(Advance());
      TRY(List(node.get()));
      return negated ? Negated(std::move(node)) : NodePtr(std::move(node));
    }
    if (negated) return Wrong("expected `in`");
    TRY_ASSIGN(node->comparison, ComparisonHere());
    node->operation = Operation::kCompare;
    TRY(LiteralHere(node.get()));
    return NodePtr(std::move(node));
  }

  Result<Comparison> ComparisonHere() {
    constexpr std::pair<std::string_view, Comparison> kAll[] = {
        {"=", Comparison::kEqual},        {"!=", Comparison::kUnequal},
        {"<>", Comparison::kUnequal},     {"<", Comparison::kLess},
        {"<=", Comparison::kLessEqual},   {">", Comparison::kGreater},
        {">=", Comparison::kGreaterEqual}};
    for (const auto& [symbol, comparison] : kAll) {
      if (!IsSymbol(symbol)) continue;
      TRY(Advance());
      return comparison;
    }
    return Wrong("expected one of = != < <= > >=, `in`, `not in` or `is`");
  }

  Status List(Predicate::Node* node) {
    node->operation = Operation::kIn;
    if (!IsSymbol("(")) return Wrong("expected `(` and a list of literals");
    do {
      TRY(Advance());
      TRY(Count());
      TRY(LiteralHere(node));
    } while (IsSymbol(","));
    if (!IsSymbol(")")) return Wrong("expected `,` or `)`");
    return Advance();
  }

  // Of the type of the node's column.
  Status LiteralHere(Predicate::Node* node) {
    const TypedColumn& column = columns_[node->column];
    Literal literal;
    if (token_.kind == TokenKind::kText) {
      literal.text = token_.text;
      literal.cell = Cell::Of(std::string_view());
    } else if (token_.kind == TokenKind::kNumber) {
      literal.cell = ParseCell(token_.text, ColumnType::kFloat);
      if (!IsNumber(literal.cell.kind)) return Wrong("expected a number");
    } else if (IsWord("true") || IsWord("false")) {
      literal.cell = Cell::Of(IsWord("true"));
    } else if (IsWord("null")) {
      return Wrong("expected a literal; write `is null`");
    } else {
      return Wrong("expected a number, 'text', true or false");
    }
    TRY(CheckType(column, literal.cell.kind));
    node->literals.push_back(std::move(literal));
    return Advance();
  }

  Status CheckType(const TypedColumn& column, CellKind kind) const {
    const bool numeric = column.type == ColumnType::kInteger || column.type == ColumnType::kFloat;
    const bool text = column.type == ColumnType::kText || column.type == ColumnType::kNull;
    const bool right = numeric
                           ? IsNumber(kind)
                           : (text ? kind == CellKind::kText
                                   : column.type == ColumnType::kBool && kind == CellKind::kBool);
    if (right) return Status::Ok();
    const std::string type(NameOf(column.type));
    const std::string name = EscapedUtf8(column.name);
    if (numeric) return Wrong("expected a number: column " + name + " has the type " + type);
    if (text) return Wrong("expected a 'text' in quotes: column " + name + " has the type " + type);
    if (column.type == ColumnType::kBool)
      return Wrong("expected true or false: column " + name + " has the type bool");
    return Wrong("expected another column: " + name + " has the type " + type +
                 ", of which only `is null` can be asked");
  }

  Lexer lexer_;
  const std::span<const TypedColumn> columns_;
  const size_t max_nodes_;
  Token token_;
  size_t nodes_ = 0;
  std::vector<size_t> used_;
};

template <typename T>
bool ParseWhole(std::string_view text, T* value) {
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, *value);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

}  // namespace

Cell ParseCell(std::string_view text, ColumnType type) {
  if (text.empty()) return Cell::Null();
  if (type == ColumnType::kInteger || type == ColumnType::kFloat) {
    int64_t integer = 0;
    if (ParseWhole(text, &integer)) return Cell::Of(integer);
    double number = 0;
    if (ParseWhole(text, &number)) return Cell::Of(number);
  }
  if (type == ColumnType::kBool && (text == "true" || text == "false"))
    return Cell::Of(text == "true");
  return Cell::Of(text);
}

Result<Predicate> Predicate::Parse(std::string_view text, std::span<const TypedColumn> columns,
                                   const PredicateLimits& limits) {
  if (text.size() > limits.text)
    return InvalidArgument(
        fmt::format("got a condition of {} bytes, expected at most {}", text.size(), limits.text));
  PredicateParser parser(text, columns, limits.nodes);
  Predicate predicate;
  TRY_ASSIGN(predicate.root_, parser.Parse());
  predicate.columns_ = parser.used();
  return predicate;
}

bool Predicate::MayAccept(std::span<const CellRange> columns) const {
  return root_ == nullptr || (EvaluateRanges(*root_, columns) & BitOf(Truth::kTrue)) != 0;
}

bool Predicate::Accepts(std::span<const Cell> row) const {
  return root_ == nullptr || Evaluate(*root_, row) == Truth::kTrue;
}

}  // namespace shoal::data
