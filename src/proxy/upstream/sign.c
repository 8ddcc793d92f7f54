/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/upstream/sign.h"

#include <stdio.h>
#include <stdlib.h>

#include "proxy/exchange/exchange.h"

struct upstream_sign {
	struct upstream_conn *conn;
	bool asked;
	char name[65]; /* of the credential */
	struct credential_signature signature;
};

static void on_signed(struct credential_signature *s, struct slice signature, const char *error)
{
	struct upstream_conn *c = container_of(s, struct upstream_sign, signature)->conn;
	char detail[640];

	if (error) {
		snprintf(detail, sizeof(detail),
		        "the client's certificate: the token did not sign: %s", error);
		upstream_conn_failed(c, EVENT_CAUSE_CREDENTIAL, detail);
		return;
	}
	tls_take_signature(c->socket.tls, signature);
	upstream_conn_shake_hands(c);
}

bool upstream_sign_new(struct upstream_conn *c, const struct exchange *ex)
{
	struct policy_credential credential;

	c->sign = calloc(1, sizeof(*c->sign));
	if (!c->sign)
		return false;
	policy_credential(ex->proxy->config.policy, ex->credential->credential, &credential);
	snprintf(c->sign->name, sizeof(c->sign->name), "%.*s", SLICE_ARG(credential.name));
	c->sign->conn = c;
	c->sign->signature.on_signed = on_signed;
	return true;
}

void upstream_sign_ask(struct upstream_conn *c)
{
	struct upstream_sign *sign = c->sign;
	struct tls_to_sign wanted;

	if (sign->asked || !tls_wants_signature(c->socket.tls, &wanted))
		return;
	sign->asked = true;
	if (credential_store_sign(c->proxy->config.credentials, slice_from_string(sign->name),
	            wanted.scheme, wanted.digest, &sign->signature) != 0)
		upstream_conn_failed(c, EVENT_CAUSE_CREDENTIAL,
		        "the client's certificate: nothing can be signed for this credential");
}

void upstream_sign_cancel(struct upstream_sign *sign)
{
	if (sign)
		credential_signature_cancel(&sign->signature);
}

void upstream_sign_free(struct upstream_sign *sign)
{
	free(sign);
}
