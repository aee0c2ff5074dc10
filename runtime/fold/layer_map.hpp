#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/fold/parts.hpp"

namespace mp::trace {

// Builds the map of layers x steps during the fold.
class LayerMap {
public:
    explicit LayerMap(std::size_t columns) : most_(columns) {}

    std::size_t row_of(const std::string& layer, Phase phase, std::uint64_t order) {
        const auto [at, fresh] = ids_.try_emplace(static_cast<char>(phase) + layer, rows_.size());
        if (fresh) rows_.push_back({.layer = layer, .phase = phase, .order = order, .cells = {}});
        return at->second;
    }
    // The column of `step`; columns become wider until the step fits. Nothing when the step has no column.
    std::optional<std::size_t> column_of(Step step) {
        if (!step.known() || most_ == 0) return std::nullopt;
        std::int64_t wide = steps_;
        while (static_cast<std::uint64_t>(step.value / wide) >= most_) wide *= 2;
        widen(wide);
        return static_cast<std::size_t>(step.value / steps_);
    }
    void keep(std::size_t row, std::size_t column, std::uint64_t order, const Cell& cell) {
        LayerSteps& into = rows_[row];
        into.order = std::min(into.order, order);
        if (into.cells.size() <= column) into.cells.resize(column + 1);
        keep_worse(into.cells[column], cell);
    }
    void merge(const LayerMap& other) {
        widen(other.steps_);
        const auto times = static_cast<std::size_t>(steps_ / other.steps_);
        for (const LayerSteps& from : other.rows_) {
            LayerSteps& into = rows_[row_of(from.layer, from.phase, from.order)];
            into.order = std::min(into.order, from.order);
            into.cells.resize(std::max(into.cells.size(), (from.cells.size() + times - 1) / times));
            for (std::size_t i = 0; i < from.cells.size(); ++i)
                keep_worse(into.cells[i / times], from.cells[i]);
        }
    }
    std::int64_t column_steps() const { return steps_; }
    // Sorted by phase, then order; all rows have the same length.
    std::vector<LayerSteps> sorted() const {
        std::vector<LayerSteps> map = rows_;
        std::size_t columns = 0;
        for (const LayerSteps& row : map) columns = std::max(columns, row.cells.size());
        for (LayerSteps& row : map) row.cells.resize(columns);
        std::sort(map.begin(), map.end(), [](const LayerSteps& a, const LayerSteps& b) {
            return std::tie(a.phase, a.order, a.layer) < std::tie(b.phase, b.order, b.layer);
        });
        return map;
    }

private:
    void widen(std::int64_t steps) {
        if (steps <= steps_) return;
        const auto times = static_cast<std::size_t>(steps / steps_);
        for (LayerSteps& row : rows_) {
            for (std::size_t i = 1; i < row.cells.size(); ++i) {
                const Cell cell = row.cells[i];
                if (i % times == 0) row.cells[i / times] = {};
                keep_worse(row.cells[i / times], cell);
            }
            row.cells.resize((row.cells.size() + times - 1) / times);
        }
        steps_ = steps;
    }

    std::size_t most_;
    std::int64_t steps_ = 1;
    std::vector<LayerSteps> rows_;
    std::unordered_map<std::string, std::size_t> ids_;
};

}  // namespace mp::trace
