#pragma once

// One field list per fact, used by both the printer and the parser (and by a test that counts), so
// that the two cannot drift apart. Order is the order of the text.
//
// A visitor offers:
//   v.place(field)                source position, the first bare word that looks like one
//   v.title(field)                the bare word after it: the name of the thing
//   v.dtypes(from, to)            "fp32->fp16"
//   v.bare(key, field, default)   as below; the key is omitted inside braces
//   v(key, field[, default])      key=value; omitted when it has its default
//   v.or_title(key, field, title) key=value; omitted when equal to the title
//   v.nested(key, operand)        key.field=value

#include <concepts>
#include <type_traits>

#include "analyzer/facts/model.hpp"

namespace mp::lint {

// F is T or const T: printing and parsing share the template.
template <class F, class T>
concept Of = std::same_as<std::remove_const_t<F>, T>;

template <class V, Of<Operand> F>
void fields(V& v, F& f) {
    v.bare("dtype", f.dtype, DType::unknown);
    v.bare("shape", f.shape, Shape::scalar);
    v("stat", f.stat);
    v("param", f.param, kNone);
    v("call", f.call, kNone);
    v("name", f.name);
    v("constant", f.constant);
    v("text", f.text);
    v("keyword", f.keyword);
    v("span", f.span);
    v("alternative", f.alternative);
    v("refers", f.refers);
    v("assumed", f.assumed);
}

template <class V, Of<TemplateArgument> F>
void fields(V& v, F& f) {
    v.bare("dtype", f.dtype, DType::unknown);
    v.bare("shape", f.shape, Shape::other);
    v("text", f.text);
}

template <class V, Of<Parameter> F>
void fields(V& v, F& f) {
    v.bare("dtype", f.dtype, DType::unknown);
    v.bare("shape", f.shape, Shape::scalar);
    v("name", f.name);
    v("constant", f.constant);
    v("refers", f.refers);
}

template <class V, Of<Alias> F>
void fields(V& v, F& f) {
    v("name", f.name);
    v("of", f.of);
    v("item", f.item);
}

template <class V, Of<Edge> F>
void fields(V& v, F& f) {
    v.bare("to", f.to, std::uint32_t{0});
    v("condition", f.condition);
    v("when", f.when, true);
    v("raises", f.raises);
}

template <class V, Of<Block> F>
void fields(V& v, F& f) {
    v.place(f.span);
    v("to", f.to);
    v("leaves", f.leaves);
}

template <class V, Of<Call> F>
void fields(V& v, F& f) {
    v.place(f.span);
    v.title(f.name);
    v("kind", f.kind);
    v("callee", f.callee);
    v("op", f.op);
    v("template_args", f.template_args);
    v("args", f.args);
    v.nested("result", f.result);
    v("macro", f.macro);
    v("block", f.block);
    v("loop_depth", f.loop_depth);
    v("in_place", f.in_place);
    v("unused", f.unused);
    v("by_version", f.by_version);
    v("lambdas", f.lambdas);
}

template <class V, Of<Cast> F>
void fields(V& v, F& f) {
    v.place(f.span);
    v.dtypes(f.from, f.to);
    v("form", f.form);
    v("purpose", f.purpose);
    v("role", f.role);
    v.nested("source", f.source);
    v("target", f.target);
    v("function", f.function);
    v("inner", f.inner, kNone);
    v("in_loop", f.in_loop);
    v("loop_index", f.loop_index);
    v("output", f.output);
    v("bound", f.bound);
    v("macro", f.macro);
    v("unsaturated", f.unsaturated);
}

template <class V, Of<Accumulation> F>
void fields(V& v, F& f) {
    v.place(f.span);
    v.title(f.name);
    v("dtype", f.dtype);
    v("element", f.element);
    v("shape", f.shape);
    v("op", f.op);
    v("form", f.form);
    v("storage", f.storage);
    v("stat", f.stat, Stat::sum);
    v("trips", f.trips);
    v("at_least", f.at_least);
    v("shared", f.shared);
    v("loop_depth", f.loop_depth);
    v("declared", f.declared);
    v("through", f.through);
    v("through_span", f.through_span);
    v("call", f.call, kNone);
}

template <class V, Of<Update> F>
void fields(V& v, F& f) {
    v.place(f.span);
    v.title(f.target);
    v("param", f.param, kNone);
    v("dtype", f.dtype);
    v("computed", f.computed);
    v("subtracts", f.subtracts);
    v("interpolates", f.interpolates);
    v("adds_a_square", f.adds_a_square);
    v("has_master", f.has_master);
    v("master_optional", f.master_optional);
    v("compensated", f.compensated);
    v("through", f.through);
    v("through_usr", f.through_usr);
}

template <class V, Of<Scaling> F>
void fields(V& v, F& f) {
    v.place(f.span);
    v.title(f.target);
    v("param", f.param, kNone);
    v("dtype", f.dtype);
    v.nested("factor", f.factor);
    v("divides", f.divides);
    v("stored", f.stored);
    v("averages", f.averages);
    v("subtracts", f.subtracts);
}

template <class V, Of<Setting> F>
void fields(V& v, F& f) {
    v.place(f.span);
    v.title(f.key);
    v.nested("value", f.value);
    v("block", f.block);
}

template <class V, Of<Definition> F>
void fields(V& v, F& f) {
    v.place(f.span);
    v.title(f.name);
    v.nested("value", f.value);
}

template <class V, Of<TypeUse> F>
void fields(V& v, F& f) {
    v.place(f.span);
    v.title(f.name);
    v("args", f.args);
    v("alias", f.alias);
}

// The facts inside a function are lines of their own; these are the ones on the `func` line.
template <class V, Of<Function> F>
void fields(V& v, F& f) {
    v.place(f.span);
    v.title(f.name);
    v.or_title("usr", f.usr, f.name);
    v.or_title("display", f.display, f.name);
    v("kind", f.kind);
    v("instantiated", f.instantiated);
    v("parent_class", f.parent_class);
    v("bases", f.bases);
    v("template_args", f.template_args);
    v("params", f.params);
    v("returns", f.returns);
    v("annotations", f.annotations);
    v("virtual", f.is_virtual);
    v("overrides", f.overrides);
    v("unnamed", f.is_unnamed);
    v("aliases", f.aliases);
}

// The facts inside a function, in the order of the text form.
template <class Coder, Of<Function> F>
void body_fields(Coder& coder, F& f) {
    coder.value(f.flow);
    coder.value(f.calls);
    coder.value(f.casts);
    coder.value(f.accumulations);
    coder.value(f.updates);
    coder.value(f.scalings);
    coder.value(f.types);
    coder.value(f.settings);
    coder.value(f.definitions);
    coder.value(f.returned);
}

template <class V, Of<Coverage> F>
void fields(V& v, F& f) {
    v("functions", f.functions);
    v("statements", f.statements);
    v("unresolved", f.unresolved);
    v("uninstantiated", f.uninstantiated);
    v("errors", f.errors);
    v("benign_errors", f.benign_errors);
    v("missing_headers", f.missing_headers);
    v("messages", f.messages);
}

template <class V, Of<Dependency> F>
void fields(V& v, F& f) {
    v.title(f.path);
    v("size", f.size);
    v("mtime_ns", f.mtime_ns);
    v("hash", f.hash);
}

template <class V, Of<Unit> F>
void fields(V& v, F& f) {
    v.title(f.path);
    v("language", f.language);
    v("state", f.state);
    v("headers", f.headers);
    v("passes", f.passes);
    v("flags", f.flags);
    v("taken", f.taken);
}

}  // namespace mp::lint
