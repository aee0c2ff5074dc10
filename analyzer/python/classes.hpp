#pragma once

// The classes of one file: their bases, their methods, and the values of their attributes.

#include <cstdint>
#include <memory>
#include <vector>

#include "analyzer/python/scope.hpp"

namespace mp::lint::python {

struct Method {
    Node definition;  // function_definition
    bool is_property = false;
    bool is_static = false;
    bool is_class_method = false;
};

// `self.x`, over all assignments in the class.
struct AttributeInfo {
    Value value;                   // on which all assignments agree
    std::vector<Node> assigned{};  // right-hand sides outside of __init__
    bool set = false;              // `value` holds something
    bool outside_init = false;     // also assigned by other methods
    std::vector<Node> writers{};   // these methods
    bool is_buffer = false;        // registered: it is cast with its module
    bool changed = false;          // also changed by `+=`, a loop target or similar
};

struct ClassInfo {
    Symbol name;  // qualified
    Node definition;
    std::vector<Symbol> bases{};
    Scope* scope = nullptr;
    FlatMap method_index{};
    std::vector<Method> methods{};
    FlatMap attribute_index{};
    std::vector<AttributeInfo> attributes{};
    bool is_module = false;  // a torch.nn.Module
    bool attributes_read = false;
    bool all_known = false;  // every base is in this file or in a library

    const Method* method(Symbol leaf) const {
        const std::uint32_t i = method_index.find(leaf);
        return i == FlatMap::kAbsent ? nullptr : &methods[i];
    }
    AttributeInfo* attribute(Symbol leaf) {
        const std::uint32_t i = attribute_index.find(leaf);
        return i == FlatMap::kAbsent ? nullptr : &attributes[i];
    }
    AttributeInfo& add_attribute(Symbol leaf);
};

class File;

// The classes by qualified name.
class Classes {
public:
    ClassInfo* find(Symbol qualified) const;
    // Reads methods and the attributes they assign. `bases` are already resolved.
    ClassInfo& add(File& file, Symbol qualified, Node definition, std::vector<Symbol> bases);

    // The class that defines the method: this one, or one of its bases in this file; nullptr when there is
    // none.
    const ClassInfo* owner_of(const ClassInfo& of, Symbol method) const;
    AttributeInfo* attribute(const ClassInfo& of, Symbol leaf) const;
    // The value that the class body, or that of a base in this file, binds to the name; nullptr unless it
    // is bound once.
    const Value* constant(const ClassInfo& of, Symbol leaf) const;
    // The first base of the class that is not in this file; empty when there is none.
    Symbol outer_base(const ClassInfo& of) const;

private:
    void read_methods(File& file, ClassInfo& of) const;

    FlatMap index_;
    std::vector<std::unique_ptr<ClassInfo>> classes_;
};

// The properties that two values share.
Value common(const Value& a, const Value& b);

}  // namespace mp::lint::python
