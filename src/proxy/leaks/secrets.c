/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a key is not a secret to the service that has given it out. So a key may be
 * in the head of a request to a host of its own service, but not in the body, because services
 * publish bodies. A common format, which any service may use (a JWT), may also be in the fields
 * that hold keys and in cookies to every host, and in bodies to its own hosts (dlp/formats.c).
 *
 * A body of a known length, up to the policy's bound (inspect), is held until it was searched. Any
 * other body is searched as it passes: what came before the end of a secret has left by then.
 */
#include "proxy/leaks/secrets.h"

#include <stdio.h>
#include <stdlib.h>

#include "proxy/deny/deny.h"
#include "proxy/exchange/authorize.h"
#include "proxy/exchange/exchange.h"
#include "proxy/http/content.h"
#include "proxy/leaks/foreign.h"
#include "vethguard/dlp/scan.h"
#include "vethguard/policy/body.h"

#define TEXT_MAX 256
#define FIELD_MAX 1024 /* bytes of a field that is searched together with its name */

struct secrets {
	struct dlp_settings settings;
	struct dlp_stream body;
	bool is_found;
	char text[TEXT_MAX]; /* what was found */
};

/* Where a text is: that decides which formats may be in it. */
struct place {
	const struct exchange *ex;
	bool in_head, holds_keys;
};

static const char no_memory[] = "no memory to search the request for secrets";

void secrets_begin(struct exchange *ex)
{
	struct proxy *proxy = ex->proxy;
	struct dlp_settings settings;

	policy_dlp(proxy->config.policy, ex->verdict.decision.rule, &settings);
	if (!ex->verdict.allowed || settings.mode == DLP_OFF) {
		secrets_free(ex);
		return;
	}
	if (!proxy->scanner)
		proxy->scanner = dlp_scanner_new();
	if (!ex->secrets)
		ex->secrets = calloc(1, sizeof(*ex->secrets));
	if (ex->secrets)
		ex->secrets->settings = settings;
	if (!ex->secrets || !proxy->scanner)
		verdict_refuse(&ex->verdict, EVENT_CAUSE_LIMIT, EVENT_FINDING_NONE, no_memory);
}

void secrets_free(struct exchange *ex)
{
	free(ex->secrets);
	ex->secrets = NULL;
}

bool secrets_are_wanted(const struct exchange *ex)
{
	return ex->secrets && !ex->secrets->is_found;
}

bool secrets_are_found(const struct exchange *ex)
{
	return ex->secrets && ex->secrets->is_found;
}

bool secrets_are_refused(const struct exchange *ex)
{
	return ex->secrets && ex->secrets->settings.mode == DLP_BLOCK;
}

bool secrets_refuse(const struct exchange *ex)
{
	return ex->secrets && ex->scanning.leak == ex->secrets->text;
}

/* Requests that are signed or filled in are held anyway, and searched there. */
bool secrets_hold_body(const struct exchange *ex)
{
	const struct http_request *r = &ex->request;

	return secrets_are_refused(ex) && ex->verdict.allowed && r->body == HTTP_BODY_LENGTH &&
	       r->content_length > 0 &&
	       r->content_length <= policy_inspect(ex->proxy->config.policy) &&
	       !ex->verdict.is_signed && !ex->verdict.fills && !exchange_is_grpc(ex);
}

/* --- what is found --- */

static void found(struct exchange *ex, const char *text)
{
	struct secrets *s = ex->secrets;

	s->is_found = true;
	snprintf(s->text, sizeof(s->text), "%s", text);
	if (secrets_are_refused(ex))
		exchange_refuse_secret(ex, s->text);
	audit_remark(ex, EVENT_FINDING_SECRET,
	        policy_rule_name(ex->proxy->config.policy, ex->verdict.decision.rule), s->text);
}

static void found_format(struct exchange *ex, const struct dlp_finding *finding, const char *where)
{
	char codings[DLP_CODINGS_TEXT_MAX], text[TEXT_MAX];

	dlp_codings_text(finding, codings);
	snprintf(text, sizeof(text), "the request carries %s (%s): in %s%s%s",
	        dlp_format_title(finding->format), dlp_format_name(finding->format), where,
	        codings[0] ? ", in " : "", codings);
	found(ex, text);
}

/* Implements dlp_question.passes. */
static bool may_be_there(void *context, uint32_t format)
{
	const struct place *place = context;
	bool common = dlp_format_is_common(format);

	if (place->holds_keys && common)
		return true;
	return (place->in_head || common) &&
	       dlp_format_is_at_home(format, destination_host(&place->ex->destination));
}

static struct dlp_question question_about(const struct exchange *ex, struct place *place)
{
	return (struct dlp_question){
	        .except = &ex->secrets->settings.except,
	        .passes = may_be_there,
	        .context = place,
	};
}

static void look(struct exchange *ex, struct place *place, struct slice text, const char *where)
{
	struct dlp_question question;
	struct dlp_finding finding;

	if (!secrets_are_wanted(ex))
		return;
	question = question_about(ex, place);
	if (dlp_scan(ex->proxy->scanner, &question, text, &finding))
		found_format(ex, &finding, where);
}

/* --- the head --- */

/* Searches the field's name and value as one text, because some formats need both ("X-Secret-Key:
 * ..."). */
void secrets_look_at_field(struct exchange *ex, const struct http_field *f)
{
	static const char where[] = "a header field";
	char text[FIELD_MAX];
	struct place place = {.ex = ex, .in_head = true};
	int n;

	if (!secrets_are_wanted(ex))
		return;
	place.holds_keys = foreign_is_key_field(f->name) ||
	                   slice_equals_ignoring_case(f->name, SLICE("cookie"));
	if (f->name.n + f->value.n + 3 > sizeof(text)) {
		look(ex, &place, f->name, where);
		look(ex, &place, f->value, where);
		return;
	}
	n = snprintf(text, sizeof(text), "%.*s: ", SLICE_ARG(f->name));
	memcpy(text + n, f->value.p, f->value.n);
	look(ex, &place, slice_of(text, (size_t)n + f->value.n), where);
}

/* True if the deciding rule names the host itself: then the host's name can carry no secret. */
static bool is_named(const struct exchange *ex)
{
	struct slice to = policy_rule_to(ex->proxy->config.policy, ex->verdict.decision.rule);
	struct slice host = destination_host(&ex->destination);

	return !host.n || memmem(to.p, to.n, host.p, host.n);
}

static void found_entropy(struct exchange *ex, uint32_t format)
{
	const struct slice host = destination_host(&ex->destination);
	const struct dlp_finding finding = {.format = format};

	if (format != DLP_NONE && secrets_are_wanted(ex) &&
	        !dlp_set_has(&ex->secrets->settings.except, format) &&
	        !dlp_format_is_at_home(format, host))
		found_format(ex, &finding, "the URL");
}

void secrets_look_at_url(struct exchange *ex)
{
	const struct http_request *r = &ex->request;
	struct place place = {.ex = ex, .in_head = true};

	if (!secrets_are_wanted(ex))
		return;
	look(ex, &place, r->target, "the URL");
	if (!is_named(ex)) {
		look(ex, &place, destination_host(&ex->destination), "the host's name");
		found_entropy(ex, dlp_entropy_host(destination_host(&ex->destination)));
	}
	found_entropy(ex, dlp_entropy_path(slice_of(r->path, r->path_n)));
	if (r->has_query)
		found_entropy(ex, dlp_entropy_query(r->query));
}

/* --- bodies and messages --- */

static const char *where_of(const struct exchange *ex)
{
	return ex->relay ? "a WebSocket message" : "the request's body";
}

void secrets_look_at_text(struct exchange *ex, struct slice piece)
{
	struct place place = {.ex = ex};
	struct dlp_question question;
	struct dlp_finding finding;

	if (!secrets_are_wanted(ex))
		return;
	question = question_about(ex, &place);
	if (dlp_stream_scan(&ex->secrets->body, ex->proxy->scanner, &question, piece, &finding))
		found_format(ex, &finding, where_of(ex));
}

void secrets_look_at_frame(struct exchange *ex, struct slice text)
{
	struct place place = {.ex = ex};

	look(ex, &place, text, where_of(ex));
}

void secrets_note_coding(struct exchange *ex)
{
	if (secrets_are_refused(ex) && secrets_are_wanted(ex))
		found(ex, "the request's body has a content coding in which vethguard cannot "
		          "search it for secrets; send it uncompressed");
}
