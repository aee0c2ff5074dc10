#include "analyzer/clang/types.hpp"

#include <optional>

#include "clang/AST/ASTContext.h"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/DeclTemplate.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Lex/Lexer.h"
#include "llvm/ADT/StringSwitch.h"

#include "kernels/base/text.hpp"

namespace mp::lint {
namespace {

constexpr std::size_t kLongestText = 80;

constexpr ElementType scalar(DType d) { return {d, Shape::scalar}; }
constexpr ElementType vec(DType d) { return {d, Shape::vec}; }

ElementType builtin_type(const clang::BuiltinType& type) {
    using enum clang::BuiltinType::Kind;
    switch (type.getKind()) {
        case Bool:
            return scalar(DType::boolean);
        case Char_S:
        case SChar:
            return scalar(DType::int8);
        case Char_U:
        case UChar:
        case Char8:
            return scalar(DType::uint8);
        case Short:
            return scalar(DType::int16);
        case UShort:
        case Char16:
            return scalar(DType::uint16);
        case Int:
        case WChar_S:
            return scalar(DType::int32);
        case UInt:
        case Char32:
        case WChar_U:
            return scalar(DType::uint32);
        case Long:
        case LongLong:
            return scalar(DType::int64);
        case ULong:
        case ULongLong:
            return scalar(DType::uint64);
        case Half:
        case Float16:
            return scalar(DType::fp16);
        case BFloat16:
            return scalar(DType::bf16);
        case Float:
            return scalar(DType::fp32);
        case Double:
            return scalar(DType::fp64);
        default:
            return {};
    }
}

// Classes outside any namespace: CUDA's, and those of HIP with another name.
std::optional<ElementType> global_class(llvm::StringRef name) {
    return llvm::StringSwitch<std::optional<ElementType>>(name)
        .Cases("__half", "__half_raw", scalar(DType::fp16))
        .Cases("__half2", "__half2_raw", vec(DType::fp16))
        .Cases("__nv_bfloat16", "__nv_bfloat16_raw", "__hip_bfloat16", "hip_bfloat16", scalar(DType::bf16))
        .Cases("__nv_bfloat162", "__nv_bfloat162_raw", "__hip_bfloat162", vec(DType::bf16))
        .Case("__nv_fp8_e4m3", scalar(DType::e4m3))
        .Cases("__nv_fp8x2_e4m3", "__nv_fp8x4_e4m3", vec(DType::e4m3))
        .Case("__nv_fp8_e5m2", scalar(DType::e5m2))
        .Cases("__nv_fp8x2_e5m2", "__nv_fp8x4_e5m2", vec(DType::e5m2))
        .Default(std::nullopt);
}

std::optional<ElementType> c10_class(llvm::StringRef name) {
    return llvm::StringSwitch<std::optional<ElementType>>(name)
        .Case("Half", scalar(DType::fp16))
        .Case("BFloat16", scalar(DType::bf16))
        .Cases("Float8_e4m3fn", "Float8_e4m3fnuz", scalar(DType::e4m3))
        .Cases("Float8_e5m2", "Float8_e5m2fnuz", scalar(DType::e5m2))
        .Case("TensorOptions", ElementType{DType::unknown, Shape::options})
        .Default(std::nullopt);
}

std::optional<ElementType> scoped_class(llvm::StringRef scope, llvm::StringRef name) {
    if (scope == "c10") return c10_class(name);
    if (scope == "at" && (name == "Tensor" || name == "TensorBase"))
        return ElementType{DType::unknown, Shape::tensor};
    if (scope == "at") return c10_class(name);
    if (scope == "cutlass")
        return llvm::StringSwitch<std::optional<ElementType>>(name)
            .Case("half_t", scalar(DType::fp16))
            .Case("bfloat16_t", scalar(DType::bf16))
            .Case("tfloat32_t", scalar(DType::tf32))
            .Case("float_e4m3_t", scalar(DType::e4m3))
            .Case("float_e5m2_t", scalar(DType::e5m2))
            .Default(std::nullopt);
    if (scope == "Eigen")
        return llvm::StringSwitch<std::optional<ElementType>>(name)
            .Case("half", scalar(DType::fp16))
            .Case("bfloat16", scalar(DType::bf16))
            .Default(std::nullopt);
    if (scope == "precision" && name == "tf32") return scalar(DType::tf32);  // nvcuda::wmma::precision
    return std::nullopt;
}

// float4, uint2 ...: CUDA's vector types.
std::optional<ElementType> vector_class(llvm::StringRef name) {
    if (name.size() < 4 || name.back() < '1' || name.back() > '4') return std::nullopt;
    const DType element = llvm::StringSwitch<DType>(name.drop_back())
                              .Case("float", DType::fp32)
                              .Case("double", DType::fp64)
                              .Case("char", DType::int8)
                              .Case("uchar", DType::uint8)
                              .Case("short", DType::int16)
                              .Case("ushort", DType::uint16)
                              .Case("int", DType::int32)
                              .Case("uint", DType::uint32)
                              .Cases("long", "longlong", DType::int64)
                              .Cases("ulong", "ulonglong", DType::uint64)
                              .Default(DType::unknown);
    if (element == DType::unknown) return std::nullopt;
    return vec(element);
}

const clang::NamespaceDecl* enclosing_namespace(const clang::Decl& decl) {
    const auto* space = llvm::dyn_cast<clang::NamespaceDecl>(decl.getDeclContext()->getRedeclContext());
    while (space && (space->isInline() || space->isAnonymousNamespace()))
        space = llvm::dyn_cast<clang::NamespaceDecl>(space->getDeclContext()->getRedeclContext());
    return space;
}

// Whether the type is the record, or the template of which it is an instance: const vec<T, N>&
bool is_of(clang::QualType type, const clang::CXXRecordDecl& record) {
    const clang::Type* t = type.getNonReferenceType().getTypePtr();
    if (t->getAsCXXRecordDecl())
        return t->getAsCXXRecordDecl()->getCanonicalDecl() == record.getCanonicalDecl();
    const auto* instance = llvm::dyn_cast<clang::ClassTemplateSpecializationDecl>(&record);
    const auto* written = t->getAs<clang::TemplateSpecializationType>();
    return instance && written &&
           written->getTemplateName().getAsTemplateDecl() == instance->getSpecializedTemplate();
}

// An operator + or += for the class: a member, or a function beside it.
bool can_be_added(const clang::CXXRecordDecl& record) {
    for (const auto kind : {clang::OO_Plus, clang::OO_PlusEqual}) {
        const auto name = record.getASTContext().DeclarationNames.getCXXOperatorName(kind);
        if (!record.lookup(name).empty()) return true;
        for (const clang::NamedDecl* found : record.getDeclContext()->getRedeclContext()->lookup(name)) {
            const auto* function = found->getAsFunction();
            if (function && function->getNumParams() > 0 &&
                is_of(function->getParamDecl(0)->getType(), record))
                return true;
        }
    }
    return false;
}

// A program's own vector of halves, which can be added and has nothing else in it: struct half4 { half2 x, y; }
std::optional<ElementType> own_vector(const clang::RecordDecl& declared) {
    const auto* record = llvm::dyn_cast_or_null<clang::CXXRecordDecl>(declared.getDefinition());
    if (!record || record->isUnion() || record->isDependentType() || record->getNumBases() != 0)
        return std::nullopt;
    DType common = DType::unknown;
    for (const clang::FieldDecl* field : record->fields()) {
        // A pointer may lead back to the record itself.
        const clang::QualType held = record->getASTContext().getBaseElementType(field->getType());
        if (held->isAnyPointerType() || held->isReferenceType()) return std::nullopt;
        const ElementType element = element_type(field->getType());
        if (!is_low_precision(element.dtype) || element.shape == Shape::pointer) return std::nullopt;
        if (common != DType::unknown && element.dtype != common) return std::nullopt;
        common = element.dtype;
    }
    const clang::SourceManager& sources = record->getASTContext().getSourceManager();
    const bool is_own = common != DType::unknown && !sources.isInSystemHeader(record->getLocation());
    return is_own && can_be_added(*record) ? std::optional(vec(common)) : std::nullopt;
}

ElementType record_type(const clang::RecordDecl& record) {
    constexpr ElementType kObject{DType::unknown, Shape::object};
    const clang::IdentifierInfo* id = record.getIdentifier();
    if (!id) return kObject;
    const clang::NamespaceDecl* space = enclosing_namespace(record);
    std::optional<ElementType> known;
    if (space)
        known = scoped_class(space->getName(), id->getName());
    else if (record.getDeclContext()->getRedeclContext()->isFileContext())
        known = global_class(id->getName());
    if (!known && !space) known = vector_class(id->getName());
    if (!known) known = own_vector(record);
    return known.value_or(kObject);
}

ElementType value_type(const clang::Type& type) {
    if (const auto* b = llvm::dyn_cast<clang::BuiltinType>(&type)) return builtin_type(*b);
    if (const auto* r = llvm::dyn_cast<clang::RecordType>(&type)) return record_type(*r->getDecl());
    if (const auto* v = llvm::dyn_cast<clang::VectorType>(&type))
        return vec(element_type(v->getElementType()).dtype);
    return {};  // enumerators are names, not numbers
}

clang::CharSourceRange file_range(clang::SourceRange range, const clang::ASTContext& context) {
    const auto& sources = context.getSourceManager();
    if (range.isInvalid()) return {};
    const auto tokens = clang::CharSourceRange::getTokenRange(range);
    const auto written = clang::Lexer::makeFileCharRange(tokens, sources, context.getLangOpts());
    if (written.isValid()) return written;
    const auto expanded = sources.getExpansionRange(range);
    return clang::Lexer::getAsCharRange(expanded, sources, context.getLangOpts());
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'; }

std::string collapsed(llvm::StringRef source) {
    std::string text;
    bool gap = false;
    for (const char c : source) {
        if (is_blank(c)) {
            gap = !text.empty();
            continue;
        }
        if (gap) text += ' ';
        gap = false;
        text += c;
        if (text.size() > kLongestText) break;
    }
    return std::string(utf8_prefix(text, kLongestText));
}

}  // namespace

ElementType element_type(clang::QualType type) {
    if (type.isNull() || type->isDependentType()) return {};
    const clang::Type* t = type.getNonReferenceType().getCanonicalType().getTypePtr();
    std::optional<Shape> outer;
    for (;;) {
        clang::QualType element;
        if (const auto* p = llvm::dyn_cast<clang::PointerType>(t)) {
            if (!outer) outer = Shape::pointer;
            element = p->getPointeeType();
        } else if (const auto* a = llvm::dyn_cast<clang::ArrayType>(t)) {
            if (!outer) outer = Shape::array;
            element = a->getElementType();
        } else {
            break;
        }
        t = element.getCanonicalType().getTypePtr();
    }
    const ElementType value = value_type(*t);
    return outer ? ElementType{value.dtype, *outer} : value;
}

const clang::Expr* start_value(const clang::VarDecl& variable) {
    const clang::Expr* init = variable.getInit();
    return init && !init->getType().isNull() ? init : nullptr;
}

Symbol spelling(const clang::Stmt& statement, const clang::ASTContext& context) {
    const auto range = file_range(statement.getSourceRange(), context);
    if (range.isInvalid()) return {};
    const auto source = clang::Lexer::getSourceText(range, context.getSourceManager(), context.getLangOpts());
    return Symbol(collapsed(source));
}

SourceSpan span_of(clang::SourceRange range, const clang::ASTContext& context) {
    const auto& sources = context.getSourceManager();
    const auto written = file_range(range, context);
    if (written.isInvalid()) return {};
    // Physical places: a #line directive would move findings and suppressions to other text.
    const auto begin = sources.getPresumedLoc(written.getBegin(), /*UseLineDirectives=*/false);
    const auto end = sources.getPresumedLoc(written.getEnd(), /*UseLineDirectives=*/false);
    if (begin.isInvalid() || end.isInvalid()) return {};
    return {.file = Symbol(begin.getFilename()),
            .line = begin.getLine(),
            .column = begin.getColumn(),
            .end_line = end.getLine(),
            .end_column = end.getColumn()};
}

}  // namespace mp::lint
