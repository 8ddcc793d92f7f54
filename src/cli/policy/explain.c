/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: METHOD and URL become the same struct policy_request that the proxy builds,
 * with the same canonical host and path, and go through the same policy_decide(). policy_explain()
 * lists the rules. If the proxy would relay the connection unread, it never sees the request, so
 * the connection is explained instead.
 */
#include "cli/policy/explain.h"
#include "vethguard/policy/method.h"

#define SHOWN_MAX 512

static const struct policy_usage usage = {
        .command = "vethguard policy explain",
        .words = {"FILE", "METHOD", "URL"},
        .resolves = true,
        .asks = true,
        .text = "Says what would happen to a request, and for every rule why it matches or not. "
                "METHOD\n"
                "CONNECT asks about a connection: https://, http://, tcp:// or udp://HOST:PORT.\n"
                "ACCEPT asks about an exposed port: tcp://SOURCE:PORT, SOURCE being host, an "
                "address or\nNAME.sandbox.internal.\n"
                "With --resolve or --config it also looks up an allowed host; one that has only "
                "refused\naddresses is denied.\n"
                "Exit status: 0 allowed, 1 denied, 2 the policy or the configuration does not "
                "load.\n",
        .examples = "  vethguard policy explain agent.yaml GET https://pypi.org/simple/\n"
                    "  vethguard policy explain agent.yaml CONNECT tcp://db.example.com:5432\n"
                    "  vethguard policy explain agent.yaml ACCEPT tcp://10.20.0.7:8080\n",
};
static const char path_fault[] =
        "no rule can decide about this path: it has a backslash, a control, a "
        "malformed escape, a \"..\" above the root or beside \"%2F\", a dot segment or NUL in "
        "another "
        "encoding, or is too long";

static const char *shown(struct slice s, char out[SHOWN_MAX])
{
	return slice_escape(s, out, SHOWN_MAX);
}

/* Prints the text without a possible user and password: everything before the last "@" is left out,
 * except the scheme. */
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

/* Says what is wrong with a text that is not a URL, if that is plain. */
static const char *url_fault(const char *method, const char *url)
{
	const char *mark = strstr(url, "://");

	if (strstr(method, "://"))
		return "this is not a URL; METHOD stands before the URL";
	if (!mark)
		return "the scheme is missing (https://host/path), not a URL";
	if (strncmp(url, "ws://", 5) == 0 || strncmp(url, "wss://", 6) == 0)
		return "a WebSocket is judged as the GET that asks for it; ask about http:// or "
		       "https:// instead of";
	if (strchr(mark, '@'))
		return "write the URL without a user";
	if (strchr(mark, '#'))
		return "what follows \"#\" is never sent; ask without it";
	if (!strchr(mark + 3, ':') &&
	        (strncmp(url, "tcp://", 6) == 0 || strncmp(url, "udp://", 6) == 0))
		return "tcp:// and udp:// need a port, as in tcp://host:5432";
	return "not a URL such as https://host/path, tcp://host:port or udp://host:port";
}

static bool next_header(const void *context, size_t *at, struct policy_field *out)
{
	const struct policy_options *options = context;

	if (*at == options->header_count)
		return false;
	*out = options->headers[(*at)++];
	return true;
}

/* Builds the request. Returns -1 after a message if METHOD and URL do not make one. */
static int read_request(struct explain *x, const char *method, const char *url)
{
	enum policy_method kind = policy_method_of(slice_from_string(method));
	bool http;
	size_t n;

	x->inbound = strcmp(method, "ACCEPT") == 0;
	x->connection = x->inbound || strcmp(method, "CONNECT") == 0;
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
	if (x->inbound && explain_accept_fault(x))
		return complain(explain_accept_fault(x), url);
	if (x->connection)
		return 0;
	x->request.method = slice_from_string(method);
	x->request.path = x->url.path;
	x->request.query = x->url.query;
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

/* Finds what the proxy would find when it connects, as far as that is known here. If the policy
 * observes, no rule names the address. */
static void look_at_address(struct explain *x)
{
	const struct ip *address = &x->request.address;

	x->unmeant = address->family && x->decision.verdict == POLICY_ALLOW &&
	             !x->decision.names_address && ip_classify(address) != IP_PUBLIC;
}

static bool is_resolving(const struct policy_options *options)
{
	return options->resolve || options->config;
}

/* Finds where an allowed host leads, if that was asked. Returns false after a message. */
static bool look_at_host(struct explain *x, const struct policy_options *options)
{
	const struct policy_host_place place = {.host = x->request.host,
	        .scheme = x->request.scheme,
	        .port = x->request.port,
	        .file = ""};

	if (!is_resolving(options) || x->request.host.n == 0 || x->decision.verdict != POLICY_ALLOW)
		return true;
	resolve_add(&x->hosts, &place);
	if (!resolve_names(&x->hosts, NULL))
		return false;
	x->leads = &x->hosts.names[0];
	return true;
}

/* Methods are compared byte by byte, and a person who writes "get" may mean GET. */
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
		memcpy(x->capitals, text, sizeof(x->capitals));
}

static int answer(struct explain *x, const struct policy_options *options, char **argv)
{
	if (x->inbound)
		return explain_accept(x, options->json);
	decide(x);
	look_at_capitals(x);
	look_at_address(x);
	if (!look_at_host(x, options))
		return POLICY_EXIT_BAD;
	return options->json ? explain_answer_json(x, argv[1], argv[2])
	                     : explain_answer_text(x, argv[1]);
}

int policy_explain_command(int argc, char **argv)
{
	struct diag_list diags = {.count = 0};
	struct explain x = {0};
	struct policy_options options;
	const struct policy_fields fields = {&options, next_header};
	int status = POLICY_EXIT_BAD;
	int n = policy_take_options(&usage, argv, &options);

	(void)argc;
	buf_init(&x.body_bytes, POLICY_INSPECT_MAX);
	if (n <= 0)
		return n == 0 ? POLICY_EXIT_GOOD : POLICY_EXIT_BAD;
	if (is_resolving(&options) && !resolve_open(&x.hosts, options.config, options.resolve))
		status = POLICY_EXIT_BAD;
	else if (policy_load_file(argv[0], &options, &x.loaded, &diags) != 0) {
		diag_print(&diags, stderr);
	} else if (read_request(&x, argv[1], argv[2]) == 0) {
		x.request.fields = &fields;
		if (!options.body || explain_read_body(&x, options.body))
			status = answer(&x, &options, argv);
	}
	explain_free_body(&x);
	policy_unload(&x.loaded);
	if (is_resolving(&options))
		resolve_close(&x.hosts);
	return status;
}
