#include "tests/analyzer/clang/flow_fixture.hpp"

#include <gtest/gtest.h>

#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Frontend/CompilerInstance.h"

namespace mp::lint::test {
namespace {

using namespace clang;

constexpr const char* kFile = "snippet.cpp";

class Functions : public RecursiveASTVisitor<Functions> {
public:
    std::vector<const FunctionDecl*> found;

    bool shouldVisitTemplateInstantiations() const { return true; }
    bool shouldVisitLambdaBody() const { return true; }
    bool VisitFunctionDecl(FunctionDecl* f) {
        if (f->doesThisDeclarationHaveABody() && !f->isDependentContext()) found.push_back(f);
        return true;
    }
};

class Literals : public RecursiveASTVisitor<Literals> {
public:
    double wanted = 0;
    const Expr* found = nullptr;

    bool VisitFloatingLiteral(FloatingLiteral* e) { return match(e, e->getValueAsApproximateDouble()); }
    bool VisitIntegerLiteral(IntegerLiteral* e) { return match(e, e->getValue().roundToDouble()); }

private:
    bool match(const Expr* e, double value) {
        if (!found && std::abs(value - wanted) <= 1e-6 * std::abs(wanted)) found = e;
        return true;
    }
};

class Probes : public RecursiveASTVisitor<Probes> {
public:
    std::vector<const Expr*> arguments;

    bool VisitCallExpr(CallExpr* call) {
        const FunctionDecl* callee = call->getDirectCallee();
        if (callee && callee->getIdentifier() && callee->getName() == "probe")
            arguments.push_back(call->getArg(0));
        return true;
    }
};

}  // namespace

const char* const kHalfHeader = R"(
struct __half { __half() = default; __half(float); operator float() const; __half& operator=(float); };
struct __half2 { __half x, y; };
typedef __half half; typedef __half2 half2;
struct __nv_bfloat16 { __nv_bfloat16() = default; __nv_bfloat16(float); explicit operator float() const;
                       __nv_bfloat16& operator=(float); };
half operator+(half, half); half operator-(half, half); half operator*(half, half); half operator/(half, half);
half& operator+=(half&, half); half& operator-=(half&, half); half& operator*=(half&, half);
bool operator>(half, half); bool operator<(half, half);
__nv_bfloat16 operator+(__nv_bfloat16, __nv_bfloat16); __nv_bfloat16& operator+=(__nv_bfloat16&, __nv_bfloat16);
half __hadd(half, half); half __hmul(half, half); half __hfma(half, half, half); half __hmax(half, half);
half2 __hadd2(half2, half2); half2 __hmul2(half2, half2); half2 __hfma2(half2, half2, half2);
half __float2half(float); float __half2float(half); __nv_bfloat16 __float2bfloat16_rn(float);
float __uint_as_float(unsigned); unsigned __float_as_uint(float); half hrsqrt(half);
template <typename T> T __shfl_xor_sync(unsigned, T, int, int = 32);
template <typename T> T __shfl_down_sync(unsigned, T, unsigned, int = 32);
extern "C" { float rsqrtf(float); float sqrtf(float); float fmaf(float, float, float); float fmaxf(float, float); }
struct Dim { unsigned x, y, z; };
extern const Dim threadIdx, blockIdx, blockDim, gridDim;
struct int4 { int x, y, z, w; };
template <typename T> void probe(T);
#define __shared__ __attribute__((annotate("shared")))
)";

Parsed::Parsed(const std::string& code) {
    std::vector<const char*> arguments{"clang++", "-std=c++20", "-fsyntax-only", "-w", kFile};
    auto diagnostics = CompilerInstance::createDiagnostics(new DiagnosticOptions());
    const std::string text = kHalfHeader + code;
    auto buffer = llvm::MemoryBuffer::getMemBufferCopy(text, kFile);
    std::vector<ASTUnit::RemappedFile> files{{kFile, buffer.release()}};
    unit_ = ASTUnit::LoadFromCommandLine(arguments.data(), arguments.data() + arguments.size(),
                                         std::make_shared<PCHContainerOperations>(), diagnostics, "", false,
                                         "", false, CaptureDiagsKind::None, files);
    if (!unit_ || unit_->getDiagnostics().hasErrorOccurred()) ADD_FAILURE() << "the snippet does not compile";
}

std::vector<const FunctionDecl*> Parsed::functions(const std::string& name) const {
    Functions all;
    all.TraverseDecl(context().getTranslationUnitDecl());
    std::erase_if(all.found, [&](const FunctionDecl* f) { return f->getNameAsString() != name; });
    return all.found;
}

const FunctionDecl& Parsed::function(const std::string& name) const {
    const auto found = functions(name);
    if (found.empty()) ADD_FAILURE() << "no function " << name;
    return *found.back();
}

std::vector<Accumulation> Parsed::accumulations(const std::string& name) const {
    Function out;
    LocalFlow(function(name), context()).add_accumulations(out);
    return out.accumulations;
}

std::vector<Update> Parsed::updates(const std::string& name) const {
    Function out;
    LocalFlow(function(name), context()).add_updates(out);
    return out.updates;
}

std::vector<Scaling> Parsed::scalings(const std::string& name) const {
    Function out;
    LocalFlow(function(name), context()).add_scalings(out);
    return out.scalings;
}

const Expr* Parsed::probe(const std::string& name, int which) const {
    Probes probes;
    probes.TraverseStmt(function(name).getBody());
    return probes.arguments.at(static_cast<std::size_t>(which));
}

Stat Parsed::stat(const std::string& name, int which) const {
    return LocalFlow(function(name), context()).stat_of(*probe(name, which));
}
bool Parsed::is_index(const std::string& name, int which) const {
    return LocalFlow(function(name), context()).is_index(*probe(name, which));
}
std::uint64_t Parsed::bound(const std::string& name, int which) const {
    return LocalFlow(function(name), context()).bound_of(*probe(name, which));
}
LoopsAround Parsed::loops(const std::string& name, int which) const {
    return LocalFlow(function(name), context()).loops_around(*probe(name, which));
}

Role Parsed::role(const std::string& name, double literal) const {
    Literals literals;
    literals.wanted = literal;
    literals.TraverseStmt(function(name).getBody());
    if (!literals.found) {
        ADD_FAILURE() << "no literal " << literal;
        return Role::none;
    }
    return LocalFlow(function(name), context()).role_of(*literals.found);
}

}  // namespace mp::lint::test
