/* SPDX-License-Identifier: Apache-2.0 */
/* Variables for the CA and the proxy; see vethguard/adapter/trust_env.h. */
#include "vethguard/adapter/trust_env.h"

enum trust_place { BUNDLE, DIRECTORY, CA };

/* Programs with a trust store of their own, and the variable that turns each to the system's. */
static const struct {
	const char *name;
	enum trust_place place;
} trust_variables[] = {
        {"SSL_CERT_FILE", BUNDLE},
        {"SSL_CERT_DIR", DIRECTORY},
        {"CURL_CA_BUNDLE", BUNDLE},
        {"REQUESTS_CA_BUNDLE", BUNDLE},
        {"PIP_CERT", BUNDLE},
        {"GIT_SSL_CAINFO", BUNDLE},
        {"NODE_EXTRA_CA_CERTS", CA},
        {"npm_config_cafile", BUNDLE},
        {"AWS_CA_BUNDLE", BUNDLE},
        {"CARGO_HTTP_CAINFO", BUNDLE},
        {"DENO_CERT", CA},
        {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", BUNDLE},
};

static void set(struct environment *env, const char *name, const char *value)
{
	environment_set(env, slice_from_string(name), slice_from_string(value));
}

void trust_env_set(struct environment *env, const struct trust_places *places)
{
	const char *values[] = {
	        [BUNDLE] = places->bundle, [DIRECTORY] = places->directory, [CA] = places->ca};

	for (size_t i = 0; i < sizeof(trust_variables) / sizeof(trust_variables[0]); i++)
		if (values[trust_variables[i].place])
			set(env, trust_variables[i].name, values[trust_variables[i].place]);
}

void trust_env_set_proxy(struct environment *env, const char *url)
{
	static const char *const names[] = {
	        "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		set(env, names[i], url);
	set(env, "NO_PROXY", "localhost,127.0.0.1,::1");
	set(env, "no_proxy", "localhost,127.0.0.1,::1");
}

/* Unsets the proxy variables, those in lower case too: a proxy of the invoking environment would
 * lead a client to an address that does not exist inside. */
void trust_env_unset_proxy(struct environment *env)
{
	static const char *const names[] = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy",
	        "https_proxy", "all_proxy", "NO_PROXY", "no_proxy"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		environment_unset(env, slice_from_string(names[i]));
}
