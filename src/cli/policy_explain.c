/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: METHOD and URL become the same struct policy_request that the proxy builds,
 * with the same canonical host and path, and go through the same policy_decide(). The rules are
 * listed by policy_explain(). Where the proxy would relay the connection unread, the request is
 * nothing that it ever sees, and the connection is what is explained.
 */
#include "policy_commands.h"
#include "vethguard/policy/explain.h"
#include "vethguard/policy/method.h"
#include "vethguard/policy/url.h"

#define JSON_MAX (256u << 20)
#define SHOWN_MAX 512

static const struct policy_usage usage = {
        .command = "vethguard policy explain",
        .words = {"FILE", "METHOD", "URL"},
        .text = "Says what would happen to a request, and for every rule why it matches or not. "
                "METHOD\n"
                "CONNECT asks about a connection: https://, http://, tcp:// or udp://HOST:PORT.\n"
                "Exit status: 0 allowed, 1 denied, 2 the policy does not load.\n",
        .examples = "  vethguard policy explain agent.yaml GET https://pypi.org/simple/\n"
                    "  vethguard policy explain agent.yaml CONNECT tcp://db.example.com:5432\n",
};
static const char *const match_texts[] = {
        [POLICY_MATCHES] = "matches",
        [POLICY_MISS_HOST] = "another host",
        [POLICY_MISS_PORT] = "another port",
        [POLICY_MISS_SCHEME] = "another scheme",
        [POLICY_MISS_METHOD] = "another method",
        [POLICY_MISS_PATH] = "another path",
};
static const char *const match_words[] = {
        [POLICY_MATCHES] = "matches",
        [POLICY_MISS_HOST] = "host",
        [POLICY_MISS_PORT] = "port",
        [POLICY_MISS_SCHEME] = "scheme",
        [POLICY_MISS_METHOD] = "method",
        [POLICY_MISS_PATH] = "path",
};
static const char *const tls_words[] = {
        [POLICY_TLS_REFUSE] = "refuse",
        [POLICY_TLS_INTERCEPT] = "intercept",
        [POLICY_TLS_PASSTHROUGH] = "passthrough",
        [POLICY_TLS_OPAQUE] = "opaque",
};

struct explain {
	struct policy_loaded loaded;
	struct url url;
	struct policy_request request;
	struct policy_decision decision;
	const char *fault;   /* refused before any rule is asked, or NULL */
	bool connection;     /* CONNECT: the connection is judged */
	bool unmeant;        /* a network allows the address, which is too wide to mean it */
	bool small;          /* the method has small letters */
	bool relayed;        /* unread: the verdict is about the connection, whatever is asked */
	enum policy_tls tls; /* of https */
	char capitals[POLICY_METHOD_MAX + 1]; /* the method that would be allowed, or "" */
	char path[POLICY_PATH_MAX];
};

static const char path_fault[] =
        "the path cannot be judged, so no rule is asked: it has a backslash, a control, a "
        "malformed escape, a \"..\" above the root or beside \"%2F\", a dot segment or NUL in "
        "another "
        "encoding, or is too long";

static const char *shown(struct slice s, char out[SHOWN_MAX])
{
	return slice_escape(s, out, SHOWN_MAX);
}

/* Without what may be a user and a password: all before the last "@", but for the scheme. */
static int complain(const char *what, const char *text)
{
	const char *mark = strstr(text, "://"), *at = strrchr(text, '@');
	char out[SHOWN_MAX], begin[SHOWN_MAX] = "";

	if (mark && at && at > mark)
		shown(slice_of(text, (size_t)(mark - text) + 3), begin);
	if (at)
		text = at;
	fprintf(stderr, "vethguard: error: %s: \"%s%s%s\"\n", what, begin, at ? "..." : "",
	        shown(slice_from_string(text), out));
	return -1;
}

/* What is wrong with a URL that is none, where that is plain. */
static const char *url_fault(const char *method, const char *url)
{
	const char *mark = strstr(url, "://");

	if (strstr(method, "://"))
		return "the method stands before the URL, and this is no URL";
	if (!mark)
		return "the scheme is missing (https://host/path), not a URL";
	if (strncmp(url, "ws://", 5) == 0 || strncmp(url, "wss://", 6) == 0)
		return "a WebSocket is judged as the GET that asks for it; ask about http:// or "
		       "https:// instead of";
	if (strchr(mark, '@'))
		return "a URL is asked about without a user";
	if (strchr(mark, '#'))
		return "what follows \"#\" is never sent; ask without it";
	if (!strchr(mark + 3, ':') &&
	        (strncmp(url, "tcp://", 6) == 0 || strncmp(url, "udp://", 6) == 0))
		return "tcp:// and udp:// need a port, as in tcp://host:5432";
	return "not a URL such as https://host/path, tcp://host:port or udp://host:port";
}

/* Builds the request. -1 with a message where METHOD and URL make none. */
static int read_request(struct explain *x, const char *method, const char *url)
{
	enum policy_method kind = policy_method_of(slice_from_string(method));
	bool http;
	size_t n;

	x->connection = strcmp(method, "CONNECT") == 0;
	if (!url_parse(slice_from_string(url), &x->url))
		return complain(url_fault(method, url), url);
	if (kind == POLICY_METHOD_MALFORMED)
		return complain("not a method", method);
	http = x->url.scheme == POLICY_HTTPS || x->url.scheme == POLICY_HTTP;
	if (!http && !x->connection)
		return complain(
		        "tcp:// and udp:// are judged as connections, with the method CONNECT, not",
		        method);
	x->request.scheme = x->url.scheme;
	x->request.host = slice_of(x->url.authority.host, x->url.authority.host_n);
	x->request.address = x->url.authority.address;
	x->request.port = x->url.authority.port;
	if (x->connection)
		return 0;
	x->request.method = slice_from_string(method);
	x->request.path = x->url.path;
	if (url_canonical_path(x->url.path, x->path, sizeof(x->path), &n))
		x->request.path = slice_of(x->path, n);
	else
		x->fault = path_fault;
	if (kind != POLICY_METHOD_FINE)
		x->fault = policy_method_fault(kind);
	return 0;
}

static void decide(struct explain *x)
{
	const struct policy *policy = &x->loaded.policy;
	struct policy_decision connection;

	policy_decide(policy, &x->request, &x->decision);
	if (x->fault)
		x->decision = (struct policy_decision){.verdict = POLICY_DENY,
		        .reason = POLICY_REASON_BAD_REQUEST,
		        .rule = POLICY_NONE,
		        .credential = POLICY_NONE};
	x->tls = policy_decide_tls(policy, &x->request, &connection);
	if (x->decision.verdict == POLICY_ALLOW && !x->decision.observed)
		return;
	x->relayed = policy_relays_unread(policy, &x->request, &connection);
	if (x->relayed) {
		x->decision = connection;
		x->fault = NULL;
	}
}

/* What the proxy would find when it dials, as far as that is known here. Where the policy observes,
 * no rule names the address. */
static void look_at_address(struct explain *x)
{
	const struct ip *address = &x->request.address;

	x->unmeant = address->family && x->decision.verdict == POLICY_ALLOW &&
	             !x->decision.names_address && ip_classify(address) != IP_PUBLIC;
}

static bool is_allowed(const struct explain *x)
{
	return x->decision.verdict == POLICY_ALLOW && !x->unmeant;
}

/* A method is compared byte by byte, and who writes "get" may mean GET. */
static void look_at_capitals(struct explain *x)
{
	struct policy_request request = x->request;
	struct policy_decision decision;
	char text[POLICY_METHOD_MAX + 1] = "";

	if (x->connection || x->fault)
		return;
	for (size_t i = 0; i < request.method.n; i++) {
		char c = request.method.p[i];

		x->small |= c >= 'a' && c <= 'z';
		text[i] = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
	}
	if (x->decision.verdict == POLICY_ALLOW)
		return;
	request.method.p = text;
	policy_decide(&x->loaded.policy, &request, &decision);
	if (decision.verdict == POLICY_ALLOW)
		memcpy(x->capitals, text, sizeof x->capitals);
}

static void print_rule(void *context, const struct policy_rule_report *r)
{
	char name[SHOWN_MAX], to[SHOWN_MAX], file[SHOWN_MAX];

	(void)context;
	printf("  %-5s %-28s %-15s %s  (%s:%u)\n", r->deny ? "deny" : "allow", shown(r->name, name),
	        match_texts[r->match], shown(r->to, to), shown(r->file, file), r->line);
	if (r->reading.n > 0)
		printf("        because a server may read the path as \"%s\"\n",
		        shown(r->reading, to));
}

static void write_rule(void *context, const struct policy_rule_report *r)
{
	struct json *j = context;

	json_object(j, NULL);
	json_string(j, "name", r->name, 0);
	json_literal(j, "kind", r->deny ? "deny" : "allow");
	json_bool(j, "matches", r->match == POLICY_MATCHES);
	if (r->match != POLICY_MATCHES)
		json_literal(j, "differs_in", match_words[r->match]);
	if (r->reading.n > 0)
		json_string(j, "read_as", r->reading, 0);
	json_string(j, "to", r->to, 0);
	json_string(j, "file", r->file, 0);
	json_uint(j, "line", r->line);
	json_end_object(j);
}

static void print_request(const struct explain *x, const char *method)
{
	char host[SHOWN_MAX], path[SHOWN_MAX], address[IP_TEXT_MAX];
	const struct policy_request *r = &x->request;
	bool v6 = r->address.family == 6;

	if (r->address.family)
		snprintf(host, sizeof(host), "%s%s%s", v6 ? "[" : "",
		        ip_format(&r->address, address), v6 ? "]" : "");
	else
		shown(r->host, host);
	printf("%s %s://%s:%u%s\n", method, policy_scheme_name(r->scheme), host, r->port,
	        x->connection ? "" : shown(r->path, path));
}

static bool allows_upgrade(const struct explain *x)
{
	const struct policy_decision *d = &x->decision;

	return d->verdict == POLICY_ALLOW && !d->observed && !x->connection &&
	       policy_rule_upgrades(&x->loaded.policy, d->rule).n > 0;
}

static void print_verdict(const struct explain *x)
{
	const struct policy *policy = &x->loaded.policy;
	const struct policy_decision *d = &x->decision;
	char text[SHOWN_MAX];

	printf("verdict: %s", is_allowed(x) ? "allow" : "deny");
	if (x->unmeant)
		printf(": no rule names this %s address but by a network too wide to mean it; it "
		       "is "
		       "refused unless the configuration permits it",
		        ip_class_name(ip_classify(&x->request.address)));
	else if (d->rule != POLICY_NONE)
		printf(", by rule \"%s\"", shown(policy_rule_name(policy, d->rule), text));
	else
		printf(": %s", policy_reason_text(d->reason));
	if (d->observed)
		printf(" (mode observe lets it pass and records it)");
	printf("\n");
	if (d->rule != POLICY_NONE && policy_rule_text(policy, d->rule).n > 0)
		printf("reason: %s\n", shown(policy_rule_text(policy, d->rule), text));
	if (d->credential != POLICY_NONE) {
		struct policy_credential credential;

		policy_credential(policy, d->credential, &credential);
		printf("credential: %s\n", shown(credential.name, text));
		if (credential.placeholder.n)
			printf("placeholder: %s, %u bytes\n", shown(credential.placeholder, text),
			        credential.placeholder_n);
	} else if (!x->connection) {
		printf("credential: none\n");
	}
	if (allows_upgrade(x))
		printf("upgrade: %s (relayed unread)\n",
		        shown(policy_rule_upgrades(policy, d->rule), text));
	if (x->request.scheme == POLICY_HTTPS)
		printf("tls: %s\n", tls_words[x->tls]);
	if (x->relayed)
		printf("relayed: only a tcp:// rule allows this place, so what is asked there is "
		       "not read, and no rule about http or https, method or path counts\n");
	if (x->capitals[0])
		printf("hint: methods are compared as they are written; %s would be allowed\n",
		        x->capitals);
	else if (x->small)
		printf("note: methods are compared as they are written, and those of HTTP are in "
		       "capital letters\n");
}

static void write_verdict(const struct explain *x, struct json *j)
{
	const struct policy *policy = &x->loaded.policy;
	const struct policy_decision *d = &x->decision;
	struct policy_credential credential;

	json_literal(j, "verdict", is_allowed(x) ? "allow" : "deny");
	json_literal(j, "why",
	        x->unmeant ? "only a network that is too wide to mean the address names it"
	        : d->verdict == POLICY_ALLOW && !d->observed
	                ? "an allow rule of the policy names it"
	                : policy_reason_text(d->reason));
	json_bool(j, "observed", d->observed);
	if (d->rule != POLICY_NONE) {
		json_string(j, "rule", policy_rule_name(policy, d->rule), 0);
		if (policy_rule_text(policy, d->rule).n > 0)
			json_string(j, "reason", policy_rule_text(policy, d->rule), 0);
	} else {
		json_null(j, "rule");
	}
	if (d->credential != POLICY_NONE) {
		policy_credential(policy, d->credential, &credential);
		json_string(j, "credential", credential.name, 0);
		if (credential.placeholder.n)
			json_string(j, "placeholder", credential.placeholder, 0);
	} else {
		json_null(j, "credential");
	}
	if (allows_upgrade(x))
		json_string(j, "upgrade", policy_rule_upgrades(policy, d->rule), 0);
	if (x->request.scheme == POLICY_HTTPS)
		json_literal(j, "tls", tls_words[x->tls]);
	json_bool(j, "relayed", x->relayed);
	if (x->capitals[0])
		json_literal(j, "allowed_in_capitals", x->capitals);
	json_bool(j, "small_letters", x->small);
}

static void list_rules(const struct explain *x,
        void (*each)(void *context, const struct policy_rule_report *report), void *context)
{
	struct policy_request judged = x->request;

	if (x->relayed) {
		judged.scheme = POLICY_TCP;
		judged.method = judged.path = SLICE("");
	}
	policy_explain(&x->loaded.policy, &judged, each, context);
}

static int answer_json(struct explain *x, const char *method, const char *url)
{
	struct json j;
	struct buf buf;

	buf_init(&buf, JSON_MAX);
	json_begin(&j, &buf);
	json_object(&j, NULL);
	json_string(&j, "policy", policy_name(&x->loaded.policy), 0);
	json_string(&j, "fingerprint", policy_fingerprint(&x->loaded.policy), 0);
	json_literal(&j, "method", method);
	json_literal(&j, "url", url);
	if (!x->connection)
		json_string(&j, "path", x->request.path, 0);
	if (x->fault)
		json_literal(&j, "fault", x->fault);
	write_verdict(x, &j);
	json_array(&j, "rules");
	if (!x->fault)
		list_rules(x, write_rule, &j);
	json_end_array(&j);
	json_end_object(&j);
	return policy_print_json(&j, &buf, is_allowed(x) ? POLICY_EXIT_GOOD : POLICY_EXIT_DENIED);
}

static int answer_text(struct explain *x, const char *method)
{
	char name[SHOWN_MAX];

	printf("policy %s\n", shown(policy_name(&x->loaded.policy), name));
	print_request(x, method);
	if (x->fault)
		printf("  %s\n", x->fault);
	else
		list_rules(x, print_rule, NULL);
	print_verdict(x);
	return is_allowed(x) ? POLICY_EXIT_GOOD : POLICY_EXIT_DENIED;
}

int policy_explain_command(int argc, char **argv)
{
	struct diag_list diags = {.count = 0};
	struct explain x = {0};
	struct policy_options options;
	int status = POLICY_EXIT_BAD;
	int n = policy_take_options(&usage, argv, &options);

	(void)argc;
	if (n <= 0)
		return n == 0 ? POLICY_EXIT_GOOD : POLICY_EXIT_BAD;
	if (policy_load_file(argv[0], &options, &x.loaded, &diags) != 0) {
		diag_print(&diags, stderr);
	} else if (read_request(&x, argv[1], argv[2]) == 0) {
		decide(&x);
		look_at_capitals(&x);
		look_at_address(&x);
		status =
		        options.json ? answer_json(&x, argv[1], argv[2]) : answer_text(&x, argv[1]);
	}
	policy_unload(&x.loaded);
	return status;
}
