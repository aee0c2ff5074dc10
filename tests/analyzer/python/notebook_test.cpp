#include "analyzer/python/notebook.hpp"

#include <gtest/gtest.h>

#include "analyzer/python/notebook_magics.hpp"

namespace mp::lint::python {
namespace {

constexpr std::string_view kNotebook = R"json({
 "cells": [
  {
   "cell_type": "markdown",
   "source": ["# half\n", "text"]
  },
  {
   "cell_type": "code",
   "execution_count": 1,
   "outputs": [{"text": ["source\n"]}],
   "source": [
    "%matplotlib inline\n",
    "import torch\n",
    "x = \"\u00e9\\n\"; y = x.half()"
   ]
  },
  {
   "source": "if x:\n    !ls\nz = 1\n",
   "cell_type": "code"
  }
 ],
 "metadata": {"language_info": {"name": "python"}},
 "nbformat": 4
}
)json";

Notebook read(std::string_view json) {
    Result<Notebook> book = Notebook::read(json, "nb.ipynb");
    EXPECT_TRUE(book) << book.error().message;
    return book ? std::move(*book) : Notebook();
}

std::string error_of(std::string_view json) {
    const Result<Notebook> book = Notebook::read(json, "nb.ipynb");
    return book ? "" : book.error().message;
}

// The text of the .ipynb from the place that a place of the code maps to.
std::string_view at(const Notebook& book, std::string_view json, std::uint32_t line, std::uint32_t column) {
    const Place place = book.in_file({line, column});
    const std::size_t begin = line_starts(json)[place.line - 1] + place.column - 1;
    return json.substr(begin, 6);
}

TEST(Notebook, CodeCellsBecomeOneText) {
    EXPECT_EQ(read(kNotebook).text(),
              "...               \nimport torch\nx = \"é\\n\"; y = x.half()\nif x:\n    ...\nz = 1\n");
}

TEST(Notebook, PlacesAreThoseOfTheFile) {
    const Notebook book = read(kNotebook);
    EXPECT_EQ(at(book, kNotebook, 2, 8), "torch\\");
    EXPECT_EQ(at(book, kNotebook, 3, 1), "x = \\\"");
    EXPECT_EQ(at(book, kNotebook, 3, 17),
              "x.half");  // behind two escapes and a letter of two bytes
    EXPECT_EQ(at(book, kNotebook, 4, 4), "x:\\n  ");
    EXPECT_EQ(at(book, kNotebook, 6, 1), "z = 1\\");
    EXPECT_EQ(book.in_file({0, 0}).line, 0u);
    EXPECT_EQ(book.in_file({99, 99}).line, 18u);  // beyond the end: the end
}

TEST(Notebook, CellsAreCountedAsJupyterShowsThem) {
    const Notebook book = read(kNotebook);
    const std::vector<CodeLine> lines = book.lines();
    ASSERT_EQ(lines.size(), 6u);
    EXPECT_EQ(lines[2].text, "x = \"é\\n\"; y = x.half()");
    EXPECT_EQ(lines[2].cell, 2u);
    EXPECT_EQ(lines[2].line, 3u);
    EXPECT_EQ(lines[2].in_file.line, 14u);
    EXPECT_EQ(lines[2].in_file.column, 6u);
    EXPECT_EQ(lines[5].cell, 3u);
    EXPECT_EQ(lines[5].line, 3u);
    EXPECT_EQ(lines[5].in_file.line, 18u);
}

TEST(Notebook, OlderFormatsAndOtherLanguages) {
    EXPECT_EQ(
        read(R"({"worksheets": [{"cells": [{"cell_type": "code", "input": ["a = 1\n", "b"]}]}]})").text(),
        "a = 1\nb\n");
    EXPECT_EQ(read(R"({"cells": [{"cell_type": "code", "source": "x"}],
                       "metadata": {"language_info": {"name": "julia"}}})")
                  .text(),
              "");
    EXPECT_EQ(read(R"({"cells": [{"cell_type": "code", "source": []}]})").text(), "");
}

TEST(Notebook, WhatIsBrokenIsSaidWithItsPlace) {
    EXPECT_EQ(error_of("{\"cells\": [\n  {\"cell_type\": }]}"), "nb.ipynb:2:17: not JSON from here on");
    EXPECT_NE(error_of(""), "");
    EXPECT_NE(error_of("[]"), "");
    EXPECT_NE(error_of("\"cells\""), "");
    EXPECT_NE(error_of("{}"), "");
    EXPECT_NE(error_of("{\"cells\": [{\"source\": \"\xff\"}]}"), "");
    EXPECT_NE(error_of("{\"cells\": [{\"source\": \"\\ud800\"}]}"), "");
    EXPECT_NE(error_of(std::string(100'000, '[')), "");
}

std::string without_magics(std::string text) {
    blank_magics(text, 0, text.size());
    return text;
}

TEST(NotebookMagics, CommandsBecomeExpressionsOfTheirLength) {
    EXPECT_EQ(without_magics("!pip install x\ny = 1\n"), "...           \ny = 1\n");
    EXPECT_EQ(without_magics("files = !ls\n"), "files = ...\n");
    EXPECT_EQ(without_magics("t = %timeit -o f()\n"), "t = ...           \n");
    EXPECT_EQ(without_magics("torch.nn?\n"), "...      \n");
    EXPECT_EQ(without_magics("!a\n"), "0 \n");
    EXPECT_EQ(without_magics("!pip install \\\n    x y\nz = 1\n"), "...           \n       \nz = 1\n");
}

TEST(NotebookMagics, PythonIsLeftAlone) {
    for (const std::string code : {"x = (a\n     % b)\n", "assert (a\n  != b)\n", "x = a % b\n",
                                   "y = x == 1\n", "s = 'what?'\n", "x = f(a=1)\n"})
        EXPECT_EQ(without_magics(code), code);
}

TEST(NotebookMagics, CellsOfOtherLanguagesAreBlank) {
    EXPECT_EQ(without_magics("%%bash\nls\n"), "      \n  \n");
    EXPECT_EQ(without_magics("%%time\nx = 1\n"), "...   \nx = 1\n");
}

}  // namespace
}  // namespace mp::lint::python
