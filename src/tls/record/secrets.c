/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: every secret, key and IV of TLS 1.3 comes from one function of OpenSSL's
 * provider, HKDF-Expand-Label. The provider of library.c offers derive() in its place, which calls
 * it and then tells label and result. If OpenSSL derived in another way, nothing would be told, and
 * no connection taken over.
 */
#include "tls/record/secrets.h"

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/params.h>

#define ALGORITHMS_MAX 32
#define FUNCTIONS_MAX 24

static OSSL_ALGORITHM algorithms[ALGORITHMS_MAX + 1];
static OSSL_DISPATCH functions[FUNCTIONS_MAX + 1];
static OSSL_FUNC_kdf_derive_fn *derive_really;

static _Thread_local struct {
	secrets_told told;
	void *context;
} watch;

static int derive(void *kdf, unsigned char *secret, size_t n, const OSSL_PARAM params[])
{
	int rc = derive_really(kdf, secret, n, params);
	const OSSL_PARAM *label;

	if (rc != 1 || !watch.told || !params)
		return rc;
	label = OSSL_PARAM_locate_const(params, OSSL_KDF_PARAM_LABEL);
	if (label && label->data_type == OSSL_PARAM_OCTET_STRING && label->data)
		watch.told(watch.context, slice_of(label->data, label->data_size),
		        slice_of(secret, n));
	return rc;
}

/* Copies the functions of the algorithm, with derive() in place of its own. Returns false if the
 * algorithm has no such function, or too many functions. */
static bool copy_functions(const OSSL_DISPATCH *in)
{
	size_t n = 0;

	for (; in->function_id && n < FUNCTIONS_MAX; in++, n++) {
		functions[n] = *in;
		if (in->function_id != OSSL_FUNC_KDF_DERIVE)
			continue;
		derive_really = OSSL_FUNC_kdf_derive(in);
		functions[n].function = (void (*)(void))derive;
	}
	return derive_really && !in->function_id;
}

const OSSL_ALGORITHM *secrets_listen(const OSSL_ALGORITHM *all)
{
	static const char name[] = OSSL_KDF_NAME_TLS1_3_KDF;
	size_t n = 0;

	for (const OSSL_ALGORITHM *a = all; a && a->algorithm_names; a++, n++) {
		if (n == ALGORITHMS_MAX)
			return all;
		algorithms[n] = *a;
		if (strncmp(a->algorithm_names, name, sizeof(name) - 1) == 0 &&
		        copy_functions(a->implementation))
			algorithms[n].implementation = functions;
	}
	return algorithms;
}

void secrets_watch(secrets_told told, void *context)
{
	watch.told = told;
	watch.context = context;
}
