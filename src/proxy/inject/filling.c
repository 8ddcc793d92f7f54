/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/inject/filling.h"

#include <errno.h>
#include <stdlib.h>

#include "proxy/deny/deny.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/holding.h"

bool filling_is_wanted(const struct exchange *ex)
{
	return ex->verdict.allowed && ex->verdict.fills && exchange_has_body(ex);
}

static struct fill_kind kind_of(const struct exchange *ex)
{
	struct policy_credential spec;

	policy_credential(ex->proxy->config.policy, ex->verdict.decision.credential, &spec);
	return fill_kind_of(&ex->request.fields, &spec, ex->verdict.decision.seals);
}

/* Examines the whole body. Returns false if the request was refused. */
static bool prepare(struct exchange *ex)
{
	struct slice body = holding_bytes(ex);
	struct fill_kind kind = kind_of(ex);
	const char *why;

	if (body.n > FILL_BODY_MAX) {
		exchange_refuse(ex, 413, EVENT_CAUSE_CLIENT, holding_too_large_to_fill);
		return false;
	}
	why = fill_check(&kind, body);
	if (!why && !ex->holding->fill) {
		ex->holding->fill = calloc(1, sizeof(*ex->holding->fill));
		why = ex->holding->fill ? NULL : fill_no_memory;
	}
	if (why == fill_no_memory)
		exchange_refuse(ex, 0, EVENT_CAUSE_LIMIT, why);
	else if (why)
		exchange_refuse(ex, 400, EVENT_CAUSE_CLIENT, why);
	return !why;
}

bool filling_begin(struct exchange *ex)
{
	ex->sending.http1_required = true;
	if (fill_is_coded(&ex->request.fields)) {
		exchange_refuse(ex, 415, EVENT_CAUSE_CLIENT,
		        "the request's body is compressed, so no placeholder can be replaced in "
		        "it");
		return true;
	}
	if (ex->holding) /* a rule has asked for it */
		return !prepare(ex);
	holding_begin(ex, HOLDING_TO_FILL);
	return true;
}

void filling_go_on(struct exchange *ex)
{
	if (prepare(ex))
		exchange_begin(ex);
}

/* A placeholder that was not replaced does not belong there. */
static void scan_filled(struct exchange *ex, const struct fill *fill)
{
	struct slice body = holding_bytes(ex);
	size_t at = 0;

	for (size_t i = 0; i < fill->count; i++) {
		const struct fill_gap *gap = &fill->gaps[i];

		exchange_scan_request(ex, (const uint8_t *)body.p + at, gap->at - at);
		at = gap->at + gap->n;
	}
	exchange_scan_request(ex, (const uint8_t *)body.p + at, body.n - at);
}

int filling_fill(struct exchange *ex, const struct substitute *s)
{
	struct fill *fill = ex->holding->fill;
	struct fill_kind kind = kind_of(ex);
	int rc = fill_make(fill, &kind, s, holding_bytes(ex));

	if (rc < 0)
		return rc;
	scan_filled(ex, fill);
	if (ex->scanning.leak)
		return -EACCES;
	ex->request.content_length = fill->length;
	return 0;
}

bool filling_is_secret(const struct exchange *ex)
{
	return ex->holding && ex->holding->fill;
}
