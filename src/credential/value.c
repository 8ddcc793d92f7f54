/* SPDX-License-Identifier: Apache-2.0 */
/* value: makes, from the bytes of a source, what is sent and what is searched for in responses. */
#include "credential/value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "vethguard/base/base64.h"

void credential_value_retain(struct credential_value *v)
{
	v->references++;
}

void credential_value_release(struct credential_value *v)
{
	if (!v || --v->references > 0)
		return;
	secret_free(&v->rendered);
	aws_keys_free(v->aws);
	secret_free(&v->jar);
	tls_identity_release(v->identity);
	mask_free(v->mask);
	free(v);
}

static struct mask *compile_mask(const struct policy_credential *credential, struct slice value)
{
	struct slice values[3] = {value};
	ptrdiff_t colon = slice_find_byte(value, ':');
	struct secret pair = {0};
	struct mask *mask;
	size_t n = 1;

	if (credential->inject == POLICY_INJECT_BASIC) {
		if (credential->username.n > 0) {
			if (inject_pair(credential->username, value, &pair) < 0)
				return NULL;
			values[n++] = secret_slice(&pair);
		} else if (colon >= 0 && value.n - (size_t)colon - 1 >= MASK_VALUE_MIN) {
			values[n++] = slice_of(value.p + colon + 1, value.n - (size_t)colon - 1);
		}
	}
	mask = mask_new(values, n);
	secret_free(&pair);
	return mask;
}

/* docker-registry: the mask hides the login for the token service, and the tokens that the service
 * gave. */
static struct mask *compile_registry_mask(const struct credential_value *value)
{
	struct slice secrets[JAR_TOKENS_MAX + 2], scheme = SLICE("Basic ");
	size_t n = jar_secrets(secret_slice(&value->jar), secrets);
	struct slice rendered = secret_slice(&value->rendered);
	struct mask *mask = NULL;
	struct secret pair;
	ptrdiff_t colon;
	ssize_t decoded;

	if (secret_alloc(&pair, rendered.n) < 0)
		return NULL;
	decoded = base64_decode(slice_of(rendered.p + scheme.n, rendered.n - scheme.n),
	        BASE64_LENIENT, pair.p, pair.cap);
	if (decoded > 0) {
		pair.n = (size_t)decoded;
		secrets[n++] = secret_slice(&pair);
		colon = slice_find_byte(secret_slice(&pair), ':');
		if (pair.n - (size_t)colon - 1 >= MASK_VALUE_MIN)
			secrets[n++] = slice_of(pair.p + colon + 1, pair.n - (size_t)colon - 1);
		mask = mask_new(secrets, n);
	}
	secret_free(&pair);
	return mask;
}

struct credential_value *value_with_jar(const struct credential_value *value, struct slice jar)
{
	struct credential_value *made = calloc(1, sizeof(*made));

	if (!made)
		return NULL;
	made->credential = value->credential;
	made->epoch = value->epoch;
	made->references = 1;
	if (secret_copy(&made->rendered, value->rendered.p, value->rendered.n) == 0 &&
	        (!jar.n || secret_copy(&made->jar, jar.p, jar.n) == 0))
		made->mask = compile_registry_mask(made);
	if (made->mask)
		return made;
	credential_value_release(made);
	return NULL;
}

/* Takes what logins gave, which may be nothing. Returns NULL, or why it cannot be used. Keys that
 * sign (sigv4) are never sent, so they need no mask. */
static const char *take_jar(struct credential_value *value,
        const struct policy_credential *credential, struct slice bytes)
{
	struct slice secrets[JAR_TOKENS_MAX];
	size_t n;

	if (!jar_is_sound(bytes))
		return "What logins have given is damaged.";
	if (bytes.n && secret_copy(&value->jar, bytes.p, bytes.n) < 0)
		return "There is no memory for the credential.";
	n = jar_secrets(secret_slice(&value->jar), secrets);
	if (credential->inject == POLICY_INJECT_SIGV4)
		return NULL;
	if (n)
		value->mask = mask_new(secrets, n);
	return n && !value->mask ? "There is no memory for the credential." : NULL;
}

/* Makes the identity of a client's certificate. Returns NULL, or why it cannot be used: a text that
 * stays until the next call. */
static const char *take_certificate(struct credential_value *value,
        const struct policy_credential *credential, struct slice pem)
{
	static char error[TLS_IDENTITY_WHY_MAX + 64];
	static uint32_t last_serial;
	char why[TLS_IDENTITY_WHY_MAX];

	value->identity = credential->field.n ? tls_identity_read_elsewhere(pem, why)
	                                      : tls_identity_read(pem, pem, why);
	value->serial = ++last_serial;
	if (value->identity)
		return NULL;
	snprintf(error, sizeof(error),
	        "The credential's value cannot be a client's certificate: %s.", why);
	return error;
}

/* Makes what signs. Returns NULL, or why it cannot be used. */
static const char *take_key(struct credential_value *value,
        const struct policy_credential *credential, struct slice bytes)
{
	const char *error = NULL;
	int rc;

	if (credential->inject == POLICY_INJECT_POSTGRES) {
		rc = inject_render(credential, bytes, &value->rendered);
		return rc == 0 ? NULL
		       : rc == -EINVAL
		               ? "The credential's value is not a password for PostgreSQL: it is "
		                 "shorter than 6 bytes, begins or ends with a blank, or is not "
		                 "printable ASCII."
		               : "There is no memory for the credential, or it is too long.";
	}
	if (credential->inject == POLICY_INJECT_CLIENT_CERTIFICATE)
		return take_certificate(value, credential, bytes);
	if (credential->inject == POLICY_INJECT_SIGV4) {
		value->aws = aws_keys_new(bytes, &error);
		return value->aws ? NULL : error;
	}
	rc = inject_hmac_key(credential, bytes, &value->rendered);
	return rc == 0         ? NULL
	       : rc == -EINVAL ? "The credential's value is not a key for hmac: it is too short, "
	                         "or not written as secret-encoding says."
	                       : "There is no memory for the credential.";
}

static bool signs(const struct policy_credential *credential)
{
	return credential->inject == POLICY_INJECT_SIGV4 ||
	       credential->inject == POLICY_INJECT_HMAC ||
	       credential->inject == POLICY_INJECT_CLIENT_CERTIFICATE ||
	       credential->inject == POLICY_INJECT_POSTGRES;
}

struct credential_value *value_new(
        const struct policy *policy, uint32_t index, struct slice bytes, const char **error)
{
	struct credential_value *value = calloc(1, sizeof(*value));
	struct policy_credential credential;
	int rc;

	*error = "There is no memory for the credential.";
	if (!value)
		return NULL;
	value->credential = index;
	value->references = 1;
	policy_credential(policy, index, &credential);
	if (credential.source == POLICY_SOURCE_SEALED || signs(&credential)) {
		*error = credential.source == POLICY_SOURCE_SEALED
		                 ? take_jar(value, &credential, bytes)
		                 : take_key(value, &credential, bytes);
		if (!*error)
			return value;
		credential_value_release(value);
		return NULL;
	}
	rc = inject_render(&credential, bytes, &value->rendered);
	if (rc == -EINVAL)
		*error = "The credential's value cannot be sent in a request: it is shorter than 6 "
		         "bytes, holds a control character, begins or ends with a blank, or lacks "
		         "the ':' that basic needs.";
	else if (rc == -EMSGSIZE)
		*error = "The credential's value is too long to be sent in a request.";
	else if (rc == 0)
		value->mask = credential.inject == POLICY_INJECT_DOCKER_REGISTRY
		                      ? compile_registry_mask(value)
		                      : compile_mask(&credential, bytes);
	if (!value->mask) {
		credential_value_release(value);
		return NULL;
	}
	return value;
}
