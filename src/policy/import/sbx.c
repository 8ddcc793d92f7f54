/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads commands of Docker's sbx that make a local policy, one a line, as a script has them:
 *
 *   sbx policy init deny-all
 *   sbx policy allow network "api.anthropic.com,**.npmjs.org:443"
 *   sbx policy allow network api.github.com --method GET --path /repos/org/site
 *   sbx policy deny network ads.example.com
 *
 * Deny beats allow. "*.x" means one label below x, "**.x" one or more. A host without a port means
 * every port; in the policy an allowed one has https and http. If a host has a rule with methods,
 * rules that allow the host as a whole are left out.
 */
#include <stdio.h>

#include "policy/import/import.h"

struct command {
	struct import_place at;
	bool deny, http, udp;
	struct slice hosts, path, scope; /* borrow the line */
	struct slice methods[IMPORT_METHODS_MAX];
	size_t method_count;
};

struct sbx {
	struct import *im;
	struct slice scope; /* the first sandbox that a line names; rules for others are left out */
	struct vec http;    /* struct slice: hosts that have allow rules with methods */
	bool shut, collects; /* everything is denied; the first of two readings, which fills http */
};

static struct import_place place(const struct command *c, const struct import_word *word)
{
	return (struct import_place){c->at.line, word->column};
}

/* Takes the next part off a list with commas. */
static bool next_part(struct slice *list, struct slice *out)
{
	const char *comma;
	size_t n;

	if (list->n == 0)
		return false;
	comma = memchr(list->p, ',', list->n);
	n = comma ? (size_t)(comma - list->p) : list->n;
	*out = slice_trim(slice_of(list->p, n));
	*list = comma ? slice_of(comma + 1, list->n - n - 1) : SLICE("");
	return true;
}

static bool take_methods(struct import *im, struct command *c, const struct import_word *word)
{
	struct slice list = word->text, one, method;
	char quoted[TREE_QUOTE_MAX];

	c->http = true;
	while (list.n > 0) {
		const char *comma = memchr(list.p, ',', list.n);

		one = slice_of(list.p, comma ? (size_t)(comma - list.p) : list.n);
		list = comma ? slice_of(comma + 1, list.n - one.n - 1) : SLICE("");
		if (!import_method(im, one, &method) || c->method_count == IMPORT_METHODS_MAX) {
			import_fault(im, place(c, word), "%s: methods are words such as GET,HEAD",
			        tree_quote(word->text, quoted));
			return false;
		}
		if (!slice_equals(method, SLICE("ANY")))
			c->methods[c->method_count++] = method;
	}
	return true;
}

/* Takes the words after "network". Returns false after a report. */
static bool take_words(
        struct import *im, const struct import_word *words, size_t count, struct command *c)
{
	char quoted[TREE_QUOTE_MAX];

	for (size_t i = 0; i < count; i++) {
		struct slice word = words[i].text;
		bool last = i + 1 == count;

		if (word.n < 2 || word.p[0] != '-') {
			if (c->hosts.n) {
				import_fault(im, place(c, &words[i]),
				        "%s: hosts are one word, with commas between them",
				        tree_quote(word, quoted));
				return false;
			}
			c->hosts = word;
		} else if (!last && slice_equals(word, SLICE("--method"))) {
			if (!take_methods(im, c, &words[++i]))
				return false;
		} else if (!last && slice_equals(word, SLICE("--path"))) {
			c->path = words[++i].text;
		} else if (!last && slice_equals(word, SLICE("--sandbox"))) {
			c->scope = words[++i].text;
		} else if (!last && slice_equals(word, SLICE("--protocol"))) {
			c->udp = !slice_starts_with(words[++i].text, SLICE("tcp"));
		} else {
			import_fault(im, place(c, &words[i]), "%s is no option that is known here",
			        tree_quote(word, quoted));
			return false;
		}
	}
	if (c->hosts.n == 0)
		import_fault(im, c->at, "the line names no host");
	else if (c->path.n && !c->http)
		import_fault(im, c->at, "--path needs --method, such as --method ANY");
	return !im->wrong;
}

static bool has_http(const struct sbx *s, struct slice host)
{
	for (size_t i = 0; i < s->http.n; i++)
		if (slice_equals(*(struct slice *)vec_at(&s->http, i), host))
			return true;
	return false;
}

/* Begins the rule of one host. Returns false if a policy cannot say it. */
static bool begin(struct sbx *s, const struct command *c)
{
	struct import_rule rule = {.deny = c->deny, .method_count = c->method_count};
	struct import_rule *made;

	memcpy(rule.methods, c->methods, sizeof(rule.methods));
	if (c->path.n && !slice_equals(c->path, SLICE("/**")) &&
	        !import_path(s->im, c->path, c->deny, &rule.path)) {
		import_note(s->im, c->at,
		        "a policy cannot express this path: it knows *, ** and plain segments; %s",
		        c->deny ? "the host is denied as a whole" : "left out");
		if (!c->deny)
			return false;
		rule.method_count = 0;
	}
	made = import_begin(s->im, c->deny);
	rule.first = made->first;
	*made = rule;
	return true;
}

static void allow_host(struct sbx *s, const struct command *c, const struct import_host *host)
{
	if (host->kind == IMPORT_ANY)
		import_note(s->im, c->at, "a policy cannot allow every host: name the hosts");
	else if (!c->http && has_http(s, host->text))
		import_note(s->im, c->at,
		        "the host has rules with methods too; only what these allow is allowed");
	else if (!begin(s, c))
		return;
	else if (c->http && host->port && host->port != 80 && host->port != 443 &&
	         host->kind != IMPORT_BELOW) {
		import_add(s->im, c->at, POLICY_HTTPS, host, host->port);
		import_add(s->im, c->at, POLICY_HTTP, host, host->port);
	} else {
		import_add_web(s->im, c->at, host, true);
	}
}

static void deny_host(struct sbx *s, const struct command *c, const struct import_host *host)
{
	const uint16_t port = host->port;
	struct import_rule *rule;

	if (host->kind == IMPORT_ANY) {
		s->shut = true;
		return;
	}
	if (!begin(s, c))
		return;
	rule = vec_at(&s->im->rules, s->im->rules.n - 1);
	rule->any_port = port == 0;
	if (rule->method_count || rule->path.n) {
		import_add(s->im, c->at, POLICY_HTTPS, host, port);
		import_add(s->im, c->at, POLICY_HTTP, host, port);
	} else {
		import_add(s->im, c->at, POLICY_TCP, host, port);
	}
}

static void apply(struct sbx *s, const struct command *c)
{
	struct slice list = c->hosts, one;
	struct import_host host;

	if (c->udp && !c->deny) {
		import_note(s->im, c->at, "udp is left out: write it as udp://host:port");
		return;
	}
	if (c->scope.n && !c->deny && !slice_equals(c->scope, s->scope)) {
		import_note(s->im, c->at, "the rule is for another sandbox than \"%.*s\"; left out",
		        SLICE_ARG(s->scope));
		return;
	}
	while (next_part(&list, &one) && !s->im->wrong) {
		if (!import_read_host(s->im, c->at, one, true, &host)) {
			s->shut |= c->deny;
			continue;
		}
		if (s->collects && c->http && !c->deny && host.text.n &&
		        !vec_append(&s->http, &host.text, 1))
			s->im->no_memory = true;
		if (!s->collects && c->deny)
			deny_host(s, c, &host);
		else if (!s->collects)
			allow_host(s, c, &host);
	}
}

static void init(struct sbx *s, const struct command *c, const struct import_word *word)
{
	char quoted[TREE_QUOTE_MAX];

	if (s->collects || slice_equals(word->text, SLICE("deny-all")))
		return;
	if (slice_equals(word->text, SLICE("balanced")))
		import_note(s->im, place(c, word),
		        "the list of \"balanced\" is not in this file: 'sbx policy ls' shows it");
	else if (slice_equals(word->text, SLICE("allow-all")))
		import_note(
		        s->im, place(c, word), "a policy cannot allow every host: name the hosts");
	else
		import_fault(s->im, place(c, word),
		        "%s: a preset is allow-all, balanced or "
		        "deny-all",
		        tree_quote(word->text, quoted));
}

static void read_line(
        struct sbx *s, struct import_place at, const struct import_word *words, size_t count)
{
	struct command c = {.at = at};
	char quoted[TREE_QUOTE_MAX];
	bool network;

	if (count > 0 && slice_equals(words[0].text, SLICE("$"))) {
		words++;
		count--;
	}
	if (count == 0)
		return;
	if (count < 4 || !slice_equals(words[0].text, SLICE("sbx")) ||
	        !slice_equals(words[1].text, SLICE("policy"))) {
		import_fault(s->im, (struct import_place){at.line, words[0].column},
		        "%s: a line is \"sbx policy allow network HOST\", \"sbx policy deny "
		        "network HOST\" or \"sbx policy init PRESET\"",
		        tree_quote(words[0].text, quoted));
		return;
	}
	c.deny = slice_equals(words[2].text, SLICE("deny"));
	network = slice_equals(words[3].text, SLICE("network"));
	if (slice_equals(words[2].text, SLICE("init"))) {
		init(s, &c, &words[3]);
	} else if ((!c.deny && !slice_equals(words[2].text, SLICE("allow"))) || !network) {
		import_fault(s->im, (struct import_place){at.line, words[2].column},
		        "%s is not known here: expected are init, allow network and deny network; "
		        "take out what a later line removes",
		        tree_quote(words[2].text, quoted));
	} else if (take_words(s->im, words + 4, count - 4, &c)) {
		if (c.scope.n && !s->scope.n)
			s->scope = arena_copy(&s->im->arena, c.scope);
		apply(s, &c);
	}
}

static void read_all(struct sbx *s, struct slice text)
{
	struct import_word words[IMPORT_WORDS_MAX];
	struct import_place at;
	unsigned line = 0;
	size_t count;

	while (import_next_line(s->im, &text, &line, words, &count, &at))
		read_line(s, at, words, count);
}

void import_sbx(struct import *im, struct slice text)
{
	struct sbx s = {.im = im, .collects = true};

	vec_init(&s.http, sizeof(struct slice));
	read_all(&s, text);
	/* The second reading adds the comments of the first one again. */
	im->notes.n = im->dropped = 0;
	s.collects = false;
	if (!im->wrong)
		read_all(&s, text);
	if (s.shut) {
		im->rules.n = im->to.n = 0;
		import_note(im, (struct import_place){1, 1},
		        "a line denies everything, or what is not understood, so nothing is "
		        "allowed");
	}
	vec_fini(&s.http);
}
