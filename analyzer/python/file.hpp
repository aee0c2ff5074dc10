#pragma once

// State shared by the functions of one file during extraction.

#include <deque>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyzer/python/classes.hpp"
#include "analyzer/python/extract.hpp"
#include "analyzer/python/names.hpp"

namespace mp::lint::python {

// A body that is extracted later, when the values of the scope around it are known.
struct Pending {
    Node node;  // function_definition or lambda
    std::vector<Node> decorators{};
    Scope* around = nullptr;
    ClassInfo* owner = nullptr;  // of a method
    Symbol usr{};
    bool by_version = false;  // Call::by_version of what is around it
};

class File {
public:
    File(const Source& source, Unit& unit);

    Scope& add_scope(Scope::Kind kind, Scope* parent, Symbol prefix);
    bool is_library_name(Symbol qualified) const;
    // Whether the name looks like code of this project: neither a known library nor part of Python.
    bool is_project_name(Symbol qualified) const;
    // The text of a node in the form that facts use: blanks collapsed, at most 80 bytes.
    Symbol text_of(Node node);
    // "f.<lambda:2>" for the second lambda that is met in the scope: an edit that only moves lines leaves the name.
    Symbol name_of_lambda(Symbol scope, Node node);
    // Makes `v` valid outside of the function that `calls` belong to.
    Value detached(Value v, const std::vector<Call>& calls);
    // The same for an attribute of an object that may be cast as a whole.
    void add_to_attribute(AttributeInfo& attribute, const Value& v, const std::vector<Call>& calls);

    Tree tree;
    Names names;
    Classes classes;
    Unit& unit;
    std::deque<Pending> pending;
    std::vector<std::vector<Choice>> choices;
    // Whether the function of this file is a generator with @contextmanager.
    bool is_context_generator(Symbol usr) const { return context_generators.contains(usr); }

    std::unordered_set<Symbol> context_generators;
    bool has_stars = false;
    Symbol star;                 // the module of the only `from m import *`; empty when there are several
    std::uint32_t builders = 0;  // number of builders made so far
    bool sets_default_dtype = false;  // torch.set_default_dtype is called somewhere

private:
    std::deque<std::unique_ptr<Scope>> scopes_;
    std::unordered_map<Symbol, std::vector<std::uint32_t>> lambdas_;  // where those of a scope begin
};

// Extract the body of a function, lambda, class or module, and append its facts to the unit.
void extract_body(File& file, const Pending& pending);
void extract_class_body(File& file, ClassInfo& type, Scope& around, Node node,
                        std::vector<Symbol> annotations);
void extract_module(File& file);

// A literal list, tuple, set or dictionary.
bool is_display(const Call& call);
// The empty span directly after a node.
SourceSpan end_of(Node node);

}  // namespace mp::lint::python
