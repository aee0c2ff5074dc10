#pragma once

// What the functions of one file share while it is being extracted.

#include <deque>
#include <memory>
#include <unordered_set>
#include <vector>

#include "analyzer/python/classes.hpp"
#include "analyzer/python/extract.hpp"
#include "analyzer/python/names.hpp"

namespace mp::lint::python {

// A body that waits for its turn: it is read when the scope around it is known.
struct Pending {
    Node node;  // function_definition or lambda
    std::vector<Node> decorators{};
    Scope* around = nullptr;
    ClassInfo* owner = nullptr;  // of a method
    Symbol usr{};
};

class File {
public:
    File(const Source& source, Unit& unit);

    Scope& add_scope(Scope::Kind kind, Scope* parent, Symbol prefix);
    bool is_library_name(Symbol qualified) const;
    // Code of this project as far as its name tells: neither a known library nor part of Python.
    bool is_project_name(Symbol qualified) const;
    // The text of a node as facts show it: blanks collapsed, at most 80 bytes.
    Symbol text_of(Node node);
    // Makes `v` mean the same outside of the function that `calls` belong to.
    Value detached(Value v, const std::vector<Call>& calls);
    // ... and as an attribute of an object that may be cast as a whole.
    void add_to_attribute(AttributeInfo& attribute, const Value& v, const std::vector<Call>& calls);

    Tree tree;
    Names names;
    Classes classes;
    Unit& unit;
    std::deque<Pending> pending;
    std::vector<std::vector<Choice>> choices;
    // A function of this file that @contextmanager makes a context.
    bool is_context_generator(Symbol usr) const { return context_generators.contains(usr); }

    std::unordered_set<Symbol> context_generators;
    Symbol star;  // the one module of which all names are imported; empty when there are several
    std::uint32_t builders = 0;       // made so far
    bool sets_default_dtype = false;  // torch.set_default_dtype is called somewhere

private:
    std::deque<std::unique_ptr<Scope>> scopes_;
};

// The body of a function, lambda, class or module to facts, appended to the unit.
void extract_body(File& file, const Pending& pending);
void extract_class_body(File& file, ClassInfo& type, Scope& around, Node node);
void extract_module(File& file);

// A literal list, tuple, set or dictionary.
bool is_display(const Call& call);
// The place right behind a node.
SourceSpan end_of(Node node);

}  // namespace mp::lint::python
