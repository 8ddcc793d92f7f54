/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that signed tokens stand for. The gateway has verified the token; here it is verified
 * again, because its claims decide which policy and variables a session gets. Then the first rule
 * of the configuration that matches names the policy, and which claims become variables and labels.
 *
 * The claim that the configuration names tells sessions apart: tokens with the same value are of
 * one session. They all have to mean the same, because a session does not change under its clients.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/base/buf.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"
#include "vethguard/tls/digest.h"
#include "supervisor/attach/attachment.h"
#include "supervisor/session/session.h"

#define VALUES_MAX 8192    /* bytes of all values that become variables and labels */
#define PLAIN_VALUE_MAX 39 /* a value that is part of the session's name */
#define HEX_BYTES 16       /* what stands for others */
#define LOGGED_PER_S 1
#define LOGGED_BURST_S 10
#define MEANING_MAX (64u << 10)

/* A token on its way to a session. */
struct showing {
	struct attachments *all;
	const struct gateway_question *question;
	const struct ip *source;
	const struct config_signer *signer;
	const struct config_signer_rule *rule;
	struct signed_claims *claims;
	int64_t now_s;
	char name[MESSAGE_NAME_MAX + 1];
	struct session_token session;
	struct attach_pair vars[CONFIG_SIGNER_CLAIMS_MAX], labels[CONFIG_SIGNER_CLAIMS_MAX];
	char values[VALUES_MAX];
	size_t used;
};

/* A session that is being made. */
struct making {
	struct attachments *all;
	struct gateway_question question;
	int64_t expires_s;
	char name[MESSAGE_NAME_MAX + 1];
};

/* --- answers --- */

__attribute__((format(printf, 1, 2))) static void report(const char *format, ...)
{
	static struct rate rate;
	const int64_t now_ms = clock_monotonic_ms();
	char text[ATTACH_READ_TEXT_MAX];
	va_list arguments;

	if (!rate.per_s)
		rate_init(&rate, LOGGED_PER_S, LOGGED_BURST_S, now_ms);
	if (!rate_take(&rate, now_ms))
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	log_warn("a signed token is refused: %s", text);
}

static void decide(struct attachments *all, const struct gateway_question *q,
        enum message_verdict verdict, uint64_t id, int64_t expires_s)
{
	const struct message_gateway_verdict m = {verdict, id, (uint64_t)expires_s};

	gateway_decide(all->supervisor, q, &m);
}

static void answer(const struct showing *s, enum message_verdict verdict)
{
	decide(s->all, s->question, verdict, 0, 0);
}

/* --- what the claims mean --- */

static int hash(struct slice text, uint8_t out[MESSAGE_TOKEN_HASH_BYTES])
{
	static struct digest digest;
	int rc = digest.context ? 0 : digest_init(&digest);

	return rc ? rc : digest_sha256(&digest, &text, 1, out);
}

int attach_signed_id(const char *signer, struct slice value, uint8_t out[MESSAGE_TOKEN_HASH_BYTES])
{
	char text[CONFIG_SIGNER_NAME_MAX + 1 + SIGNED_TOKEN_MAX];
	const size_t n = strlen(signer) + 1;

	if (value.n > sizeof(text) - n)
		return -EINVAL;
	memcpy(text, signer, n); /* a name has no NUL */
	memcpy(text + n, value.p, value.n);
	return hash(slice_of(text, n + value.n), out);
}

static bool is_plain(struct slice value)
{
	for (size_t i = 0; i < value.n; i++) {
		const char c = value.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		            c == '-' || c == '_' || c == '.'))
			return false;
	}
	return value.n > 0 && value.n <= PLAIN_VALUE_MAX && value.n != 2 * (size_t)HEX_BYTES;
}

static void make_name(struct showing *s, struct slice value)
{
	int n = snprintf(s->name, sizeof(s->name), "%s.", s->signer->name);

	if (is_plain(value)) {
		snprintf(s->name + n, sizeof(s->name) - (size_t)n, "%.*s", SLICE_ARG(value));
		return;
	}
	for (size_t i = 0; i < HEX_BYTES; i++, n += 2)
		snprintf(s->name + n, sizeof(s->name) - (size_t)n, "%02x", s->session.id[i]);
}

static const struct config_signer_rule *find_rule(const struct showing *s)
{
	const struct json_tree *tree = &s->claims->tree;

	for (size_t i = 0; i < s->signer->rule_count; i++) {
		const struct config_signer_rule *rule = &s->signer->rules[i];
		bool matches = true;

		for (size_t k = 0; matches && k < rule->when_count; k++)
			matches = json_tree_has(tree,
			        json_tree_find(tree, slice_from_string(rule->when[k].claim)),
			        slice_from_string(rule->when[k].text), true);
		if (matches)
			return rule;
	}
	return NULL;
}

static bool may_come_from(const struct config_signer_rule *rule, const struct ip *source)
{
	bool may = rule->from_count == 0;

	for (size_t i = 0; i < rule->from_count; i++)
		may = may || ip_in_prefix(source, &rule->from[i]);
	return may;
}

/* Keeps a copy of a claim's value. Returns NULL if it is no string, whole number, true or false. */
static const char *keep(struct showing *s, const char *claim)
{
	const struct json_tree *tree = &s->claims->tree;
	const struct json_value *value = json_tree_find(tree, slice_from_string(claim));
	char *out = s->values + s->used;
	struct slice text;
	int64_t number;

	if (json_tree_string_of(tree, value, &text) || json_tree_whole(tree, value, &number))
		text = json_text(tree, value);
	else if (value && value->kind == JSON_IS_TRUE)
		text = SLICE("true");
	else if (value && value->kind == JSON_IS_FALSE)
		text = SLICE("false");
	else
		return NULL;
	if (text.n >= sizeof(s->values) - s->used)
		return NULL;
	memcpy(out, text.p, text.n);
	out[text.n] = '\0';
	s->used += text.n + 1;
	return out;
}

static bool fill(struct showing *s, const struct config_claim *claims, size_t count,
        struct attach_pair *pairs)
{
	for (size_t i = 0; i < count; i++) {
		pairs[i] = (struct attach_pair){claims[i].text, keep(s, claims[i].claim)};
		if (pairs[i].value)
			continue;
		report("signer %s: claim %s, of which %s is to be made, is missing, or not a "
		       "string",
		        s->signer->name, claims[i].claim, claims[i].text);
		return false;
	}
	return true;
}

static int add(struct buf *out, const char *text)
{
	return buf_append(out, text, strlen(text) + 1);
}

/* Hashes all that the token means, besides how long it is valid. */
static int hash_meaning(struct showing *s)
{
	char address[IP_TEXT_MAX], network[IP_TEXT_MAX + 8];
	struct buf all;
	int rc;

	buf_init(&all, MEANING_MAX);
	rc = buf_append(&all, s->session.id, sizeof(s->session.id));
	rc = rc ? rc : add(&all, s->rule->policy);
	for (size_t i = 0; !rc && i < 2 * s->rule->var_count; i++)
		rc = add(&all, i % 2 ? s->vars[i / 2].value : s->vars[i / 2].key);
	rc = rc ? rc : add(&all, "");
	for (size_t i = 0; !rc && i < 2 * s->rule->label_count; i++)
		rc = add(&all, i % 2 ? s->labels[i / 2].value : s->labels[i / 2].key);
	rc = rc ? rc : add(&all, "");
	for (size_t i = 0; !rc && i < s->rule->from_count; i++) {
		snprintf(network, sizeof(network), "%s/%u",
		        ip_format(&s->rule->from[i].base, address), s->rule->from[i].bits);
		rc = add(&all, network);
	}
	rc = rc ? rc : hash(buf_slice(&all), s->session.hash);
	buf_fini(&all);
	return rc;
}

static bool is_revoked(const struct showing *s, struct slice value)
{
	uint8_t id[MESSAGE_TOKEN_HASH_BYTES];

	return attach_signed_id(s->signer->name, value, id) != 0 ||
	       bundles_revoke_id(s->all, id) != NULL ||
	       revocations_has(&s->all->revocations, id, s->now_s * 1000);
}

/* Returns false after an answer. */
static bool understand(struct showing *s)
{
	const struct json_tree *tree = &s->claims->tree;
	struct slice value, jti;

	if (!json_tree_string(tree, slice_from_string(s->signer->session), &value) || !value.n ||
	        attach_signed_id(s->signer->name, value, s->session.id) != 0) {
		report("signer %s: claim %s, which tells sessions apart, is missing",
		        s->signer->name, s->signer->session);
		return false;
	}
	make_name(s, value);
	if (is_revoked(s, value) || bundles_revoke_session(s->all, s->name) ||
	        (json_tree_string(tree, SLICE("jti"), &jti) && is_revoked(s, jti))) {
		report("signer %s: it was revoked", s->signer->name);
		return false;
	}
	s->rule = find_rule(s);
	if (!s->rule || !may_come_from(s->rule, s->source)) {
		report("signer %s: %s", s->signer->name,
		        s->rule ? "it comes from another network than its rule says"
		                : "no rule matches its claims");
		return false;
	}
	s->session.is_signed = true;
	s->session.lifetime_s = s->signer->terms.lifetime_s;
	s->session.from_count = s->rule->from_count;
	memcpy(s->session.from, s->rule->from, sizeof(s->rule->from));
	return fill(s, s->rule->vars, s->rule->var_count, s->vars) &&
	       fill(s, s->rule->labels, s->rule->label_count, s->labels) && hash_meaning(s) == 0;
}

_Static_assert(CONFIG_SIGNER_FROM_MAX == MESSAGE_FROM_MAX, "a rule's networks are a session's");
_Static_assert(CONFIG_SIGNER_NAME_MAX + 1 + PLAIN_VALUE_MAX <= MESSAGE_NAME_MAX, "names fit");

/* --- its session --- */

static void on_made(void *context, const struct attach_result *result)
{
	struct making *m = context;

	if (result->status == ATTACH_OK)
		decide(m->all, &m->question, MESSAGE_TOKEN_ACCEPTED, result->attachment->record.id,
		        m->expires_s);
	else if (result->status == ATTACH_BUSY)
		decide(m->all, &m->question, MESSAGE_TOKEN_LATER, 0, 0);
	else {
		report("session %s cannot be made: %s%s%s", m->name, result->text,
		        result->diagnostics ? "\n" : "",
		        result->diagnostics ? result->diagnostics : "");
		decide(m->all, &m->question, MESSAGE_TOKEN_REFUSED, 0, 0);
	}
	free(m);
}

static void make(const struct showing *s)
{
	const int64_t left_s = s->claims->expires_s - s->now_s;
	const struct attach_request request = {.name = s->name,
	        .kind = ATTACH_SESSION,
	        .session = s->session,
	        .policy = s->rule->policy,
	        .labels = {s->rule->label_count, s->labels},
	        .vars = {s->rule->var_count, s->vars},
	        .ttl_s = left_s < ATTACH_TTL_MAX_S ? (uint32_t)left_s : ATTACH_TTL_MAX_S,
	        .caller = {.uid = geteuid(), .gid = getegid(), .asked = true},
	        .caller_pid = getpid()};
	char objection[SIGNED_BUNDLE_WHY_MAX];
	struct making *m;

	if (bundles_object_to_signer(s->all, s->signer, objection)) {
		report("session %s cannot be made: signer %s: %s", s->name, s->signer->name,
		        objection);
		answer(s, MESSAGE_TOKEN_REFUSED);
		return;
	}
	m = malloc(sizeof(*m));
	if (!m) {
		answer(s, MESSAGE_TOKEN_LATER);
		return;
	}
	*m = (struct making){s->all, *s->question, s->claims->expires_s, ""};
	memcpy(m->name, s->name, sizeof(m->name));
	attachments_attach(s->all, &request, on_made, m);
}

static void join(const struct showing *s, struct attachment *a)
{
	const struct session_token *token = &a->record.session;

	if (a->record.kind != ATTACH_SESSION || !token->is_signed ||
	        memcmp(token->hash, s->session.hash, sizeof(token->hash)) != 0) {
		report("session %s exists, and its claims mean something else: detach the session, "
		       "and the next token makes it anew",
		        s->name);
		answer(s, MESSAGE_TOKEN_REFUSED);
	} else if (a->trouble[0]) {
		report("session %s: %s", s->name, a->trouble);
		answer(s, MESSAGE_TOKEN_REFUSED);
	} else if (attachment_is_left(a) || a->detaching || !a->sandbox ||
	           !a->sandbox->gateway.admitted ||
	           !attachment_lasts_until(a, s->claims->expires_s * 1000)) {
		answer(s, MESSAGE_TOKEN_LATER);
	} else {
		decide(s->all, s->question, MESSAGE_TOKEN_ACCEPTED, a->record.id,
		        s->claims->expires_s);
	}
}

static void show(struct showing *s)
{
	struct attachment *a;

	if (!understand(s)) {
		answer(s, MESSAGE_TOKEN_REFUSED);
		return;
	}
	a = attachments_find(s->all, s->name);
	if (a)
		join(s, a);
	else
		make(s);
}

void attachments_show_token(struct attachments *all, const struct gateway_question *q,
        struct slice text, const struct ip *source)
{
	const struct gateway_life *life = &all->supervisor->gateway;
	struct signed_claims *claims = calloc(1, sizeof(*claims));
	struct showing *s = calloc(1, sizeof(*s));
	const int64_t now_s = clock_real_ms() / 1000;
	const char *why = NULL;
	int i = -1;

	if (!s || !claims || all->held || all->stopping || all->recovering)
		decide(all, q, MESSAGE_TOKEN_LATER, 0, 0);
	else if (all->revocations_damaged)
		why = "what was revoked before is not known: " REVOCATIONS_FILE " is damaged";
	else if (bundles_unknown(all))
		why = "what a bundle has revoked is not known: 'vethguard bundle list' says why";
	else
		i = signed_token_check(text,
		        (const struct token_signer *const *)life->signers.items,
		        life->signers.count, now_s, claims, &why);
	if (i >= 0) {
		*s = (struct showing){.all = all,
		        .question = q,
		        .source = source,
		        .signer = &life->config.signers[i],
		        .claims = claims,
		        .now_s = now_s};
		show(s);
		signed_claims_fini(claims);
	} else if (why) {
		report("%s", why);
		decide(all, q, MESSAGE_TOKEN_REFUSED, 0, 0);
	}
	free(claims);
	free(s);
}
