/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the findings of `policy explain`, as text and as JSON. */
#include "cli/policy/explain.h"
#include "vethguard/policy/registry.h"

#define JSON_MAX (256u << 20)
#define SHOWN_MAX 512

static const char *const match_texts[] = {
        [POLICY_MATCHES] = "matches",
        [POLICY_MISS_HOST] = "another host",
        [POLICY_MISS_PORT] = "another port",
        [POLICY_MISS_SCHEME] = "another scheme",
        [POLICY_MISS_METHOD] = "another method",
        [POLICY_MISS_PATH] = "another path",
        [POLICY_MISS_CONDITION] = "other conditions",
        [POLICY_MISS_EXCEPT] = "excepted",
};
static const char *const match_words[] = {
        [POLICY_MATCHES] = "matches",
        [POLICY_MISS_HOST] = "host",
        [POLICY_MISS_PORT] = "port",
        [POLICY_MISS_SCHEME] = "scheme",
        [POLICY_MISS_METHOD] = "method",
        [POLICY_MISS_PATH] = "path",
        [POLICY_MISS_CONDITION] = "condition",
        [POLICY_MISS_EXCEPT] = "except",
};
static const char *const tls_words[] = {
        [POLICY_TLS_REFUSE] = "refuse",
        [POLICY_TLS_INTERCEPT] = "intercept",
        [POLICY_TLS_PASSTHROUGH] = "passthrough",
        [POLICY_TLS_OPAQUE] = "opaque",
};

static const char *shown(struct slice s, char out[SHOWN_MAX])
{
	return slice_escape(s, out, SHOWN_MAX);
}

static bool leads_astray(const struct explain *x)
{
	return x->leads && x->leads->state == RESOLVE_REFUSED;
}

static bool is_allowed(const struct explain *x)
{
	return x->decision.verdict == POLICY_ALLOW && !x->unmeant && !leads_astray(x);
}

/* Returns what the rule is called: kind, or, if kind is NULL, what the rule does. */
static const char *kind_of(const char *kind, const struct policy_rule_report *r)
{
	return kind ? kind : r->deny ? "deny" : r->asks ? "ask" : "allow";
}

static void print_rule(void *context, const struct policy_rule_report *r)
{
	char name[SHOWN_MAX], to[SHOWN_MAX], file[SHOWN_MAX];

	printf("  %-5s %-28s %-15s %s  (%s:%u)\n", kind_of(context, r), shown(r->name, name),
	        match_texts[r->match], shown(r->to, to), shown(r->file, file), r->line);
	if (r->reading.n > 0)
		printf("        because a server may read the path as \"%s\"\n",
		        shown(r->reading, to));
}

struct rule_writer {
	struct json *j;
	const char *kind; /* as kind_of() */
};

static void write_rule(void *context, const struct policy_rule_report *r)
{
	struct rule_writer *w = context;
	struct json *j = w->j;

	json_object(j, NULL);
	json_string(j, "name", r->name, 0);
	json_literal(j, "kind", kind_of(w->kind, r));
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

static void print_fields(const struct policy_credential *credential)
{
	struct slice rest = credential->prefix, name, template;
	char text[SHOWN_MAX];

	while (policy_field_next(&rest, &name, &template)) {
		printf("sent in: %s", shown(name, text));
		printf(": %s\n", shown(template, text));
	}
}

static void print_hmac(const struct policy_credential *credential)
{
	struct policy_hmac hmac;
	char text[SHOWN_MAX];

	policy_hmac(credential, &hmac);
	printf("signs: %s\n", shown(hmac.sign, text));
	if (hmac.query.n)
		printf("sent in: parameter %s\n", shown(hmac.query, text));
}

static void print_registry(const struct policy_credential *credential)
{
	struct policy_registry registry;
	char text[SHOWN_MAX];

	policy_registry(credential, &registry);
	printf("logs in at: %s", shown(registry.realm, text));
	printf(" (service %s)\n", shown(registry.service, text));
	printf("for repositories: %s\n", shown(registry.repositories, text));
	printf("for actions: %s\n", shown(registry.actions, text));
}

static void print_credential(const struct policy *policy, const struct policy_decision *d)
{
	struct policy_credential credential;
	char source[POLICY_SOURCE_TEXT_MAX], text[SHOWN_MAX];
	policy_credential(policy, d->credential, &credential);
	printf("credential: %s, from %s\n", shown(credential.name, text),
	        policy_source_text(&credential, source));
	if (d->seals)
		printf("sealed: tokens in the answer become placeholders\n");
	if (credential.inject == POLICY_INJECT_PLACEHOLDER)
		printf("replaced in: %s\n", shown(credential.field, text));
	if (credential.inject == POLICY_INJECT_CLIENT_CERTIFICATE)
		printf("shown as: the client's certificate\n");
	if (credential.inject == POLICY_INJECT_CLIENT_CERTIFICATE && credential.field.n)
		printf("signed by: %s\n", shown(credential.field, text));
	if (credential.inject == POLICY_INJECT_POSTGRES)
		printf("logs in as: %s (PostgreSQL)\n", shown(credential.username, text));
	if (credential.inject == POLICY_INJECT_DOCKER_REGISTRY)
		print_registry(&credential);
	if (credential.inject == POLICY_INJECT_HMAC)
		print_hmac(&credential);
	if (credential.inject == POLICY_INJECT_FIELDS || credential.inject == POLICY_INJECT_HMAC)
		print_fields(&credential);
	if (credential.inject == POLICY_INJECT_SIGV4) {
		printf("signed for: region %s", shown(credential.field, text));
		printf(", service %s\n", shown(credential.prefix, text));
	}
	if (credential.require)
		printf("no other credential: a request that brings one is refused\n");
	if (credential.placeholder.n)
		printf("placeholder: %s, %u bytes\n", shown(credential.placeholder, text),
		        credential.placeholder_n);
}

static void print_verdict(const struct explain *x)
{
	const struct policy *policy = &x->loaded.policy;
	const struct policy_decision *d = &x->decision;
	char text[SHOWN_MAX], where[RESOLVE_TEXT_MAX];

	printf("verdict: %s", !is_allowed(x) ? "deny" : d->asks ? "ask" : "allow");
	if (leads_astray(x))
		printf(": the name %s", resolve_text(&x->hosts, x->leads, where));
	else if (x->unmeant)
		printf(": only a rule with a wide network covers this %s address, and such a rule "
		       "does not allow it; it is refused unless the configuration permits it",
		        ip_class_name(ip_classify(&x->request.address)));
	else if (d->inquires)
		printf(": vethguard itself answers, and nothing leaves");
	else if (d->rule != POLICY_NONE)
		printf(", by rule \"%s\"", shown(policy_rule_name(policy, d->rule), text));
	else
		printf(": %s", policy_reason_text(d->reason));
	if (d->observed)
		printf(" (mode observe lets it pass and records it)");
	printf("\n");
	if (d->rule != POLICY_NONE && policy_rule_text(policy, d->rule).n > 0)
		printf("reason: %s\n", shown(policy_rule_text(policy, d->rule), text));
	if (policy_has_layers(policy))
		printf("layer: %s\n", policy_layer_name(policy_decision_layer(policy, d)));
	if (d->why)
		printf("scope: %s\n", d->why);
	if (d->credential != POLICY_NONE)
		print_credential(policy, d);
	else if (!x->connection)
		printf("credential: none\n");
	if (d->asks)
		printf("asks: the request is held for up to %u s until a person approves it\n",
		        policy_rule_wait_s(policy, d->rule));
	if (allows_upgrade(x))
		printf("upgrade: %s (relayed unread)\n",
		        shown(policy_rule_upgrades(policy, d->rule), text));
	if (x->request.scheme == POLICY_HTTPS)
		printf("tls: %s\n", tls_words[x->tls]);
	explain_limits_text(x);
	explain_dlp_text(x);
	if (x->leads && !leads_astray(x))
		printf("host: %s %s\n", x->leads->host, resolve_text(&x->hosts, x->leads, where));
	if (x->body.fault)
		printf("body: %s\n", x->body.fault);
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
	char source[POLICY_SOURCE_TEXT_MAX];

	json_literal(j, "verdict", !is_allowed(x) ? "deny" : d->asks ? "ask" : "allow");
	json_literal(j, "why",
	        leads_astray(x) ? "the name leads to addresses that are refused"
	        : x->unmeant    ? "only a rule with a wide network covers it, and such a rule does "
	                          "not allow it"
	        : d->inquires   ? "vethguard itself answers, and nothing leaves"
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
	if (policy_has_layers(policy))
		json_literal(j, "layer", policy_layer_name(policy_decision_layer(policy, d)));
	if (d->credential != POLICY_NONE) {
		policy_credential(policy, d->credential, &credential);
		json_string(j, "credential", credential.name, 0);
		json_literal(j, "credential_source", policy_source_text(&credential, source));
		if (d->seals)
			json_bool(j, "seals", true);
		if (credential.placeholder.n)
			json_string(j, "placeholder", credential.placeholder, 0);
	} else {
		json_null(j, "credential");
	}
	if (allows_upgrade(x))
		json_string(j, "upgrade", policy_rule_upgrades(policy, d->rule), 0);
	if (x->request.scheme == POLICY_HTTPS)
		json_literal(j, "tls", tls_words[x->tls]);
	explain_limits_json(x, j);
	explain_dlp_json(x, j);
	if (x->leads) {
		json_object(j, "host");
		resolve_json(&x->hosts, x->leads, j);
		json_end_object(j);
	}
	if (x->body.fault)
		json_literal(j, "body_fault", x->body.fault);
	if (d->why)
		json_literal(j, "scope_fault", d->why);
	json_bool(j, "relayed", x->relayed);
	if (x->capitals[0])
		json_literal(j, "allowed_in_capitals", x->capitals);
	json_bool(j, "small_letters", x->small);
}

static struct policy_request judged(const struct explain *x)
{
	struct policy_request request = x->request;

	if (x->relayed) {
		request.scheme = POLICY_TCP;
		request.method = request.path = SLICE("");
	}
	return request;
}

static void write_rules(const struct explain *x, struct json *j)
{
	const struct policy_request request = judged(x);
	struct rule_writer w = {j, NULL};
	struct policy floor;

	policy_explain(&x->loaded.policy, &request, write_rule, &w);
	w.kind = "floor";
	if (policy_floor(&x->loaded.policy, &floor))
		policy_explain(&floor, &request, write_rule, &w);
}

static void print_rules(const struct explain *x)
{
	const struct policy_request request = judged(x);
	char kind[] = "floor";
	struct policy floor;

	policy_explain(&x->loaded.policy, &request, print_rule, NULL);
	if (policy_floor(&x->loaded.policy, &floor))
		policy_explain(&floor, &request, print_rule, kind);
}

int explain_answer_json(const struct explain *x, const char *method, const char *url)
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
		write_rules(x, &j);
	json_end_array(&j);
	json_end_object(&j);
	return policy_print_json(&j, &buf, is_allowed(x) ? POLICY_EXIT_GOOD : POLICY_EXIT_DENIED);
}

int explain_answer_text(const struct explain *x, const char *method)
{
	char name[SHOWN_MAX];

	printf("policy %s\n", shown(policy_name(&x->loaded.policy), name));
	print_request(x, method);
	if (x->fault)
		printf("  %s\n", x->fault);
	else
		print_rules(x);
	print_verdict(x);
	return is_allowed(x) ? POLICY_EXIT_GOOD : POLICY_EXIT_DENIED;
}
