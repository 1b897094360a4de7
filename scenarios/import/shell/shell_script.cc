#include "scenarios/import/shell/shell_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "scenarios/import/shell/shell_batch.h"
#include "scenarios/import/shell/shell_conditions.h"
#include "scenarios/import/shell/shell_cursor.h"

namespace tandem {
namespace {

constexpr int kDeepestShell = 64;
constexpr std::int64_t kMostShellSteps = 100'000;
constexpr std::size_t kMostShellWords = std::size_t{1} << 20;  // of all commands
constexpr std::size_t kMostShellNotes = 20;

// What nested runs share.
struct ShellState {
  std::map<std::string, std::vector<ShellToken>> functions{};
  std::int64_t steps = 0;
  std::size_t words = 0;
};

// Executes tokens. What is not to be executed is passed over in the same way, so that the end of every construct is
// found.
class ShellRun : private ShellCursor {
 public:
  ShellRun(const std::vector<ShellToken>& tokens, ShellScript& script, ShellState& state, int depth)
      : ShellCursor(tokens), script_(script), state_(state), depth_(depth) {}

  void all() {
    while (now().mark != ShellMark::end_of_file) {
      list(true, {});
      if (now().mark != ShellMark::end_of_file) ++at_;  // a word or bracket that closes nothing
    }
  }

 private:
  void note(int line, const std::string& text) {
    std::vector<std::string>& notes = script_.notes;
    const std::string entry = fmt::format("line {}: {}", line, text);
    const bool is_known = std::find(notes.begin(), notes.end(), entry) != notes.end();
    if (!is_known && notes.size() < kMostShellNotes) notes.push_back(entry);
  }
  void note_undecided(int line, const ShellTruth& truth) {
    if (!truth.reason.empty())
      note(line, fmt::format("whether {} cannot be seen in this file: taken as false", truth.reason));
    if (!truth.unset.empty()) note(line, fmt::format("{} has no value in this file: taken as empty", truth.unset));
  }

  // Commands up to a word or bracket that closes them. Returns whether the last one succeeds.
  bool list(bool active, Words stops) {
    bool succeeds = true;
    for (skip_ends(); !is_at_stop(stops); skip_ends()) {
      const std::size_t before = at_;
      succeeds = chain(active);
      if (at_ == before) ++at_;
    }
    return succeeds;
  }

  bool chain(bool active) {
    bool succeeds = pipeline(active);
    while (now().mark == ShellMark::and_if || now().mark == ShellMark::or_if) {
      const bool goes_on = now().mark == ShellMark::and_if ? succeeds : !succeeds;
      ++at_;
      skip_ends();
      const bool next = pipeline(active && goes_on);
      if (goes_on) succeeds = next;
    }
    return succeeds;
  }

  bool pipeline(bool active) {
    const bool negates = take("!");
    bool succeeds = command(active);
    while (now().mark == ShellMark::pipe) {
      ++at_;
      skip_ends();
      succeeds = command(active);
    }
    return negates ? !succeeds : succeeds;
  }

  bool command(bool active) {
    if (depth_ + nested_ > kDeepestShell || ++state_.steps > kMostShellSteps || state_.words > kMostShellWords) {
      note(now().line, "the script goes on for too long: the rest is not read");
      at_ = tokens_.size() - 1;
      return true;
    }
    ++nested_;
    const bool succeeds = compound(active);
    --nested_;
    return succeeds;
  }

  bool compound(bool active) {
    if (take("if")) return condition(active);
    if (is("for") || is("select")) return loop_over_words(active);
    if (is("while") || is("until")) return loop(active);
    if (take("case")) return cases(active);
    if (take("{")) {
      const bool succeeds = list(active, {});
      take("}");
      return succeeds;
    }
    if (now().mark == ShellMark::open) {
      ++at_;
      const bool succeeds = list(active, {});
      if (now().mark == ShellMark::close) ++at_;
      return succeeds;
    }
    if (now().mark == ShellMark::expression) return expression(active);
    if (is("[[") || is("[") || is("test")) return test(active);
    if (is("function") || is_function()) return function(active);
    return simple(active);
  }

  bool condition(bool active) {
    bool is_done = false;
    do {
      const bool holds = list(active && !is_done, {"then"});
      take("then");
      list(active && !is_done && holds, {});
      is_done |= holds;
    } while (take("elif"));
    if (take("else")) list(active && !is_done, {});
    take("fi");
    return true;
  }

  bool loop_over_words(bool active) {
    const int line = now().line;
    at_ += 1;
    const std::string name = now().pieces.empty() ? "" : now().pieces.front().text;
    const bool counts = now().mark == ShellMark::expression;
    if (counts && active) note(line, "a loop that counts is not read");
    ++at_;
    std::vector<ShellWord> items;
    if (take("in")) {
      for (; now().mark == ShellMark::word; ++at_) {
        std::vector<ShellWord> words = script_.values.fields(now());
        items.insert(items.end(), words.begin(), words.end());
      }
    }
    skip_ends();
    take("do");
    const std::size_t begin = at_;
    list(false, {});
    const std::size_t end = at_;
    constexpr std::size_t kMostRounds = 1000;
    if (items.size() > kMostRounds)
      note(line, fmt::format("only the first {} rounds of the loop are read", kMostRounds));
    for (std::size_t i = 0; active && !counts && i < std::min(items.size(), kMostRounds); ++i) {
      script_.values.set(name, {items[i]}, line, 1);
      at_ = begin;
      list(true, {});
    }
    at_ = end;
    take("done");
    return true;
  }

  bool loop(bool active) {
    const int line = now().line;
    const bool repeats_while = is("while");
    ++at_;
    const bool holds = list(active, {"do"});
    take("do");
    if (active && holds == repeats_while) note(line, "a loop is not read");
    list(false, {});
    take("done");
    return true;
  }

  bool cases(bool active) {
    const ShellToken& subject_token = now();
    const ShellWord subject = script_.values.whole(subject_token);
    ++at_;
    skip_ends();
    take("in");
    bool is_done = false;
    for (skip_ends(); !is("esac") && now().mark != ShellMark::end_of_file; skip_ends()) {
      if (now().mark == ShellMark::open) ++at_;
      bool matches = false;
      for (; now().mark == ShellMark::word || now().mark == ShellMark::pipe; ++at_) {
        if (now().mark == ShellMark::word) matches |= matches_shell_pattern(subject, script_.values.whole(now()));
      }
      if (now().mark == ShellMark::close) ++at_;
      const std::size_t before = at_;
      list(active && matches && !is_done, {"esac"});
      is_done |= matches;
      const bool is_stuck = !is("esac") && at_ == before;
      if (now().mark == ShellMark::case_end || is_stuck) ++at_;
    }
    take("esac");
    if (active && !subject.is_complete()) note_undecided(subject_token.line, {.unset = subject.shown});
    return true;
  }

  bool expression(bool active) {
    const std::string text = now().pieces.front().text;
    const int line = now().line, column = now().column;
    ++at_;
    if (!active) return true;
    const std::size_t equals = text.find('=');
    std::string name = text.substr(0, equals);
    std::erase(name, ' ');
    const bool assigns = equals != std::string::npos && is_shell_name(name) && text.compare(equals, 2, "==") != 0;
    const auto value = script_.values.arithmetic(assigns ? std::string_view(text).substr(equals + 1) : text);
    if (!value) note(line, fmt::format("(({})) is not read", text));
    if (assigns && value) {
      const std::string number = std::to_string(*value);
      script_.values.set(name, {{.text = number, .shown = number, .line = line, .column = column}}, line, column);
    }
    return value && *value != 0;
  }

  bool test(bool active) {
    const std::string begin = now().pieces.front().text;
    const int line = now().line;
    ++at_;
    std::vector<ShellTestPart> parts;
    for (; now().mark != ShellMark::end && now().mark != ShellMark::end_of_file && now().mark != ShellMark::case_end;
         ++at_) {
      if ((begin == "[[" && is("]]")) || (begin == "[" && is("]"))) {
        ++at_;
        break;
      }
      const bool is_operator = now().mark == ShellMark::and_if || now().mark == ShellMark::or_if;
      if (begin == "test" && is_operator) break;
      parts.push_back(now().mark == ShellMark::word ? ShellTestPart{.word = script_.values.whole(now())}
                                                    : ShellTestPart{.symbol = symbol_of(now().mark)});
    }
    if (!active) return true;
    const ShellTruth truth = evaluated_test(parts);
    note_undecided(line, truth);
    return truth.holds;
  }

  bool is_function() const {
    return now().mark == ShellMark::word && at_ + 2 < tokens_.size() && tokens_[at_ + 1].mark == ShellMark::open &&
           tokens_[at_ + 2].mark == ShellMark::close && !now().begins_array;
  }

  bool function(bool active) {
    take("function");
    const std::string name = now().pieces.empty() ? "" : now().pieces.front().text;
    ++at_;
    if (now().mark == ShellMark::open) ++at_;
    if (now().mark == ShellMark::close) ++at_;
    skip_ends();
    const std::size_t begin = at_;
    compound(false);
    if (!active) return true;
    std::vector<ShellToken> body(tokens_.begin() + static_cast<std::ptrdiff_t>(begin),
                                 tokens_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, tokens_.size() - 1)));
    body.push_back({.mark = ShellMark::end});
    body.push_back({.mark = ShellMark::end_of_file});
    state_.functions[name] = std::move(body);
    return true;
  }

  // Assignments, then a program and its arguments.
  bool simple(bool active) {
    ShellCommand words;
    bool assigns = true;
    while (now().mark == ShellMark::word || now().mark == ShellMark::open) {
      if (now().mark == ShellMark::open) break;
      if (assigns && assignment(active)) continue;
      if (active) {
        std::vector<ShellWord> fields = script_.values.fields(now());
        words.insert(words.end(), fields.begin(), fields.end());
      }
      static constexpr std::array kDeclaring = {"export", "declare", "local", "readonly", "typeset", "env"};
      const bool declares =
          std::any_of(kDeclaring.begin(), kDeclaring.end(), [&](const char* word) { return is(word); });
      const bool is_option = !now().pieces.empty() && now().pieces.front().text.starts_with('-');
      assigns = assigns && (declares || is_option);
      ++at_;
    }
    if (!active || words.empty()) return true;
    return execute(std::move(words));
  }

  bool assignment(bool active) {
    const ShellToken& token = now();
    if (token.pieces.empty() || token.pieces.front().quote != ShellPiece::Quote::bare) return false;
    const std::string& text = token.pieces.front().text;
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) return false;
    const bool appends = text[equals - 1] == '+';
    const std::string name = text.substr(0, equals - (appends ? 1 : 0));
    if (!is_shell_name(name)) return false;
    ++at_;
    if (token.begins_array) {
      assign_array(name, appends, active, token);
      return true;
    }
    ShellToken value = token;
    value.pieces.front().text = text.substr(equals + 1);
    if (!active) return true;
    std::vector<ShellWord> words{script_.values.whole(value)};
    if (appends) {
      script_.values.append(name, std::move(words), false, token.line, token.column);
    } else {
      script_.values.set(name, std::move(words), token.line, token.column);
    }
    return true;
  }

  void assign_array(const std::string& name, bool appends, bool active, const ShellToken& token) {
    std::vector<ShellWord> words;
    if (now().mark == ShellMark::open) ++at_;
    int brackets = 0;
    for (; now().mark != ShellMark::end_of_file && (now().mark != ShellMark::close || brackets > 0); ++at_) {
      if (now().mark == ShellMark::open) ++brackets;
      if (now().mark == ShellMark::close) --brackets;
      if (now().mark != ShellMark::word || !active) continue;
      std::vector<ShellWord> fields = script_.values.fields(now());
      words.insert(words.end(), fields.begin(), fields.end());
    }
    if (now().mark == ShellMark::close) ++at_;
    if (!active) return;
    if (appends) {
      script_.values.append(name, std::move(words), true, token.line, token.column);
    } else {
      script_.values.set(name, std::move(words), token.line, token.column);
    }
  }

  bool execute(ShellCommand words) {
    const std::string& program = words.front().text;
    if (program == "source" || program == ".") {
      note(words.front().line, fmt::format("the file {} is not read", words.size() > 1 ? words[1].shown : ""));
      return true;
    }
    if (program == "false") return false;
    if (const auto found = state_.functions.find(program); found != state_.functions.end()) {
      const std::vector<ShellToken> body = found->second;
      ShellRun(body, script_, state_, depth_ + nested_).all();
      return true;
    }
    if (program == "eval") {
      std::string text;
      for (std::size_t i = 1; i < words.size(); ++i) text += words[i].shown + " ";
      run_string(text, words.front());
      return true;
    }
    for (std::size_t i = 0; i + 2 < words.size(); ++i) {
      const bool is_shell = words[i].text == "bash" || words[i].text == "sh" || words[i].text.ends_with("/bash");
      if (is_shell && words[i + 1].text.starts_with('-') && words[i + 1].text.ends_with('c')) {
        run_string(words[i + 2].shown, words[i + 2]);
      }
    }
    state_.words += words.size();
    script_.commands.push_back(std::move(words));
    return true;
  }

  void run_string(const std::string& text, const ShellWord& at) {
    if (const auto tokens = tokens_at(at.line, at.column, text)) {
      ShellRun(*tokens, script_, state_, depth_ + nested_).all();
    } else {
      note(at.line, "a string that is executed is not read: its quotes do not match");
    }
  }

  ShellScript& script_;
  ShellState& state_;
  const int depth_;
  int nested_ = 0;
};

}  // namespace

ShellScript read_shell_script(std::string_view text, const std::string& file) {
  const ShellTokens tokens = shell_tokens(text, file);
  ShellScript script{.values = ShellValues(file)};
  set_batch_variables(tokens.batch_options, script.values);
  ShellState state;
  ShellRun(tokens.tokens, script, state, 0).all();
  for (const int line : tokens.documents_with_flags) {
    script.notes.push_back(fmt::format("line {}: the lines of a here-document are not read", line));
  }
  return script;
}

}  // namespace tandem
