/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No answer of a module is trusted: counts and lengths are compared with what was asked for, and
 * texts are escaped before they are shown. What a module does with memory cannot be checked, so it
 * has a process of its own.
 *
 * A few attempts with a wrong PIN lock a token for good. So there is no login to a token that
 * reports that only one attempt is left.
 */
#include "token/key.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "token/result.h"

#define SLOTS_MAX 64

#define INFO_BYTES 19
/* What PKCS #1 1.5 puts before a digest (RFC 8017 section 9.2, note 1), and PSS's parameters, by
 * the digest's length. */
static const struct hash {
	size_t digest_n;
	uint8_t info[INFO_BYTES];
	struct ck_pss pss;
} hashes[] = {
        {32,
                {0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02,
                        0x01, 0x05, 0x00, 0x04, 0x20},
                {CKM_SHA256, CKG_MGF1_SHA256, 32}},
        {48,
                {0x30, 0x41, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02,
                        0x02, 0x05, 0x00, 0x04, 0x30},
                {CKM_SHA384, CKG_MGF1_SHA384, 48}},
        {64,
                {0x30, 0x51, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02,
                        0x03, 0x05, 0x00, 0x04, 0x40},
                {CKM_SHA512, CKG_MGF1_SHA512, 64}},
};

static bool refuse(char why[KEY_WHY_MAX], const char *what, ck_rv rv)
{
	snprintf(why, KEY_WHY_MAX, "%s: %s", what, result_text(rv));
	return false;
}

bool key_load_module(struct key *key, const char *path, char why[KEY_WHY_MAX])
{
	struct ck_initialize arguments = {.flags = CKF_OS_LOCKING_OK};
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	ck_rv (*get)(const struct ck_functions **list);
	ck_rv rv;

	if (!library) {
		snprintf(why, KEY_WHY_MAX, "the module cannot be loaded: %.400s", dlerror());
		return false;
	}
	*(void **)&get = dlsym(library, "C_GetFunctionList");
	if (!get || get(&key->functions) != CKR_OK || !key->functions ||
	        key->functions->version.major < 2) {
		snprintf(why, KEY_WHY_MAX, "%.300s is not a PKCS #11 module", path);
		return false;
	}
	rv = key->functions->initialize(&arguments);
	return rv == CKR_OK || rv == CKR_CRYPTOKI_ALREADY_INITIALIZED ||
	       refuse(why, "the module cannot be initialized", rv);
}

static bool is_meant(const struct pkcs11_uri *uri, ck_ulong slot, const struct ck_token_info *info)
{
	return (!uri->has_slot || uri->slot == slot) && (info->flags & CKF_TOKEN_INITIALIZED) &&
	       pkcs11_uri_matches(uri, PKCS11_TOKEN, info->label, sizeof(info->label)) &&
	       pkcs11_uri_matches(
	               uri, PKCS11_MANUFACTURER, info->manufacturer, sizeof(info->manufacturer)) &&
	       pkcs11_uri_matches(uri, PKCS11_MODEL, info->model, sizeof(info->model)) &&
	       pkcs11_uri_matches(uri, PKCS11_SERIAL, info->serial, sizeof(info->serial));
}

static void keep_label(struct key *key, const struct ck_token_info *info)
{
	size_t n = sizeof(info->label);

	while (n > 0 && info->label[n - 1] == ' ')
		n--;
	slice_escape(slice_of((const char *)info->label, n), key->token, sizeof(key->token));
}

static bool may_log_in(const struct ck_token_info *info, char why[KEY_WHY_MAX])
{
	const char *wrong = NULL;

	if (info->flags & CKF_USER_PIN_LOCKED)
		wrong = "its PIN is locked after wrong ones: unlock it as its security officer";
	else if (info->flags & CKF_USER_PIN_FINAL_TRY)
		wrong = "it has one attempt for its PIN left, which is not used here: log in to it "
		        "with "
		        "its own tool ('pkcs11-tool --login --test'), then 'vethguard reload'";
	else if (info->flags & CKF_PROTECTED_AUTHENTICATION_PATH)
		wrong = "its PIN is typed on its own keypad, and nobody is there to type it";
	else if (!(info->flags & CKF_USER_PIN_INITIALIZED))
		wrong = "it has no user PIN yet: its security officer sets one";
	if (wrong)
		snprintf(why, KEY_WHY_MAX, "the token cannot be logged in to: %s", wrong);
	return !wrong;
}

bool key_find_token(
        struct key *key, const struct pkcs11_uri *uri, bool *needs_login, char why[KEY_WHY_MAX])
{
	ck_ulong slots[SLOTS_MAX], count = SLOTS_MAX, matches = 0;
	struct ck_token_info info, found = {0};
	ck_rv rv = key->functions->get_slot_list(1, slots, &count);

	if (rv != CKR_OK)
		return refuse(why, "the module lists no tokens", rv);
	for (ck_ulong i = 0; i < count && i < SLOTS_MAX; i++) {
		memset(&info, 0, sizeof(info));
		if (key->functions->get_token_info(slots[i], &info) != CKR_OK ||
		        !is_meant(uri, slots[i], &info))
			continue;
		found = info;
		key->slot = slots[i];
		matches++;
	}
	if (matches != 1) {
		snprintf(why, KEY_WHY_MAX,
		        matches ? "more than one token matches the URI: add its serial"
		                : "no token matches the URI: is it plugged in, and may the "
		                  "module's user read it? ('pkcs11-tool --list-slots')");
		return false;
	}
	keep_label(key, &found);
	*needs_login = found.flags & CKF_LOGIN_REQUIRED;
	if (*needs_login && !may_log_in(&found, why))
		return false;
	rv = key->functions->open_session(key->slot, CKF_SERIAL_SESSION, NULL, NULL, &key->session);
	return rv == CKR_OK || refuse(why, "the token opens no session", rv);
}

bool key_is_in(struct key *key, const struct pkcs11_uri *uri, char why[KEY_WHY_MAX])
{
	struct ck_token_info info = {0};
	ck_rv rv = key->functions->get_token_info(key->slot, &info);

	key->broken = rv != CKR_OK;
	if (key->broken)
		return refuse(why, "the token cannot be asked", rv);
	if (is_meant(uri, key->slot, &info))
		return true;
	snprintf(why, KEY_WHY_MAX, "token %s is not the one that the URI names", key->token);
	return false;
}

bool key_log_in(struct key *key, struct slice pin, char why[KEY_WHY_MAX])
{
	ck_rv rv = key->functions->login(
	        key->session, CKU_USER, (const ck_byte *)pin.p, (ck_ulong)pin.n);

	if (rv == CKR_OK || rv == CKR_USER_ALREADY_LOGGED_IN)
		return true;
	if (rv == CKR_PIN_LOCKED)
		return refuse(why, "the token refuses the login", rv);
	snprintf(why, KEY_WHY_MAX,
	        "the token refuses the PIN: %s. It is not tried again before 'vethguard reload', "
	        "so "
	        "that the token does not lock itself",
	        result_text(rv));
	return false;
}

static ck_ulong number_of(struct key *key, ck_ulong type, ck_ulong otherwise)
{
	ck_ulong value = otherwise;
	struct ck_attribute a = {type, &value, sizeof(value)};

	return key->functions->get_attribute_value(key->session, key->object, &a, 1) == CKR_OK &&
	                       a.n == sizeof(value)
	               ? value
	               : otherwise;
}

static bool flag_of(struct key *key, ck_ulong type, bool otherwise)
{
	ck_byte value = otherwise;
	struct ck_attribute a = {type, &value, sizeof(value)};

	return key->functions->get_attribute_value(key->session, key->object, &a, 1) == CKR_OK &&
	                       a.n == sizeof(value)
	               ? value != 0
	               : otherwise;
}

static bool can_sign(struct key *key, char why[KEY_WHY_MAX])
{
	const ck_ulong type = number_of(key, CKA_KEY_TYPE, ~0UL);
	struct ck_mechanism_info info = {0};
	const char *wrong = NULL;

	key->kind = type == CKK_RSA ? MESSAGE_TOKEN_RSA : MESSAGE_TOKEN_EC;
	if (type != CKK_RSA && type != CKK_EC)
		wrong = "it is neither RSA nor EC";
	else if (!flag_of(key, CKA_SIGN, true))
		wrong = "it may not sign (CKA_SIGN)";
	else if (flag_of(key, CKA_ALWAYS_AUTHENTICATE, false))
		wrong = "it wants the PIN before each signature (CKA_ALWAYS_AUTHENTICATE)";
	else if (key->functions->get_mechanism_info(
	                 key->slot, type == CKK_RSA ? CKM_RSA_PKCS : CKM_ECDSA, &info) != CKR_OK ||
	         !(info.flags & CKF_SIGN))
		wrong = type == CKK_RSA ? "the token signs nothing by CKM_RSA_PKCS"
		                        : "the token signs nothing by CKM_ECDSA";
	if (wrong)
		snprintf(why, KEY_WHY_MAX, "the key cannot be used: %s", wrong);
	return !wrong;
}

bool key_find(struct key *key, const struct pkcs11_uri *uri, char why[KEY_WHY_MAX])
{
	ck_ulong class = CKO_PRIVATE_KEY, found[2], count = 0, asked = 1;
	struct ck_attribute wanted[3] = {{CKA_CLASS, &class, sizeof(class)}};
	static const struct {
		enum pkcs11_attribute ours;
		ck_ulong type;
	} names[] = {{PKCS11_OBJECT, CKA_LABEL}, {PKCS11_ID, CKA_ID}};
	ck_rv rv;

	for (size_t i = 0; i < 2; i++)
		if (uri->values[names[i].ours].given)
			wanted[asked++] = (struct ck_attribute){names[i].type,
			        (void *)(uintptr_t)uri->values[names[i].ours].bytes,
			        uri->values[names[i].ours].n};
	rv = key->functions->find_objects_init(key->session, wanted, asked);
	if (rv == CKR_OK) {
		rv = key->functions->find_objects(key->session, found, 2, &count);
		key->functions->find_objects_final(key->session);
	}
	key->broken = rv != CKR_OK;
	if (key->broken)
		return refuse(why, "the token's keys cannot be looked through", rv);
	if (count != 1) {
		snprintf(why, KEY_WHY_MAX,
		        count ? "token %s has more than one such private key: name both object and "
		                "id"
		              : "token %s has no such private key ('pkcs11-tool --login "
		                "--list-objects')",
		        key->token);
		return false;
	}
	key->object = found[0];
	return can_sign(key, why);
}

static bool is_pss(uint16_t scheme)
{
	return scheme == MESSAGE_SCHEME_PSS_SHA256 || scheme == MESSAGE_SCHEME_PSS_SHA384 ||
	       scheme == MESSAGE_SCHEME_PSS_SHA512;
}

static bool is_ecdsa(uint16_t scheme)
{
	return scheme == MESSAGE_SCHEME_ECDSA_SHA256 || scheme == MESSAGE_SCHEME_ECDSA_SHA384 ||
	       scheme == MESSAGE_SCHEME_ECDSA_SHA512;
}

bool key_fits(const struct key *key, uint16_t scheme, char why[KEY_WHY_MAX])
{
	struct ck_mechanism_info info = {0};
	const bool ec = key->kind == MESSAGE_TOKEN_EC;

	if (scheme != MESSAGE_SCHEME_ANY && ec != is_ecdsa(scheme)) {
		snprintf(why, KEY_WHY_MAX,
		        "the key is of kind %s, which is not that of the certificate",
		        ec ? "EC" : "RSA");
		return false;
	}
	if (is_pss(scheme) &&
	        (key->functions->get_mechanism_info(key->slot, CKM_RSA_PKCS_PSS, &info) != CKR_OK ||
	                !(info.flags & CKF_SIGN))) {
		snprintf(why, KEY_WHY_MAX,
		        "the token does not sign with CKM_RSA_PKCS_PSS, which TLS 1.3 needs with "
		        "an RSA key: use an EC key");
		return false;
	}
	return true;
}

/* True if the token only refuses the scheme or the digest for this key. Then the session is as good
 * as before: the worker has chosen both, and must not be able to end the process by them. */
static bool is_of_question(ck_rv rv)
{
	return rv == CKR_DATA_INVALID || rv == CKR_DATA_LEN_RANGE || rv == CKR_KEY_SIZE_RANGE ||
	       rv == CKR_MECHANISM_INVALID || rv == CKR_MECHANISM_PARAM_INVALID;
}

size_t key_sign(struct key *key, uint16_t scheme, struct slice digest,
        uint8_t out[MESSAGE_SIGNATURE_MAX], char why[KEY_WHY_MAX])
{
	const bool rsa = key->kind == MESSAGE_TOKEN_RSA, pss = is_pss(scheme);
	struct ck_mechanism mechanism = {rsa ? CKM_RSA_PKCS : CKM_ECDSA, NULL, 0};
	uint8_t data[INFO_BYTES + MESSAGE_SCHEME_DIGEST_MAX];
	const size_t before = rsa && !pss ? INFO_BYTES : 0;
	const struct hash *hash = hashes;
	ck_ulong n = MESSAGE_SIGNATURE_MAX;
	struct ck_pss parameters;
	ck_rv rv;

	while (hash->digest_n != digest.n)
		hash++;
	parameters = hash->pss;
	if (pss)
		mechanism =
		        (struct ck_mechanism){CKM_RSA_PKCS_PSS, &parameters, sizeof(parameters)};
	memcpy(data, hash->info, before);
	memcpy(data + before, digest.p, digest.n);
	rv = key->functions->sign_init(key->session, &mechanism, key->object);
	if (rv == CKR_OK)
		rv = key->functions->sign(key->session, data, before + digest.n, out, &n);
	if (rv == CKR_OK && n > 0 && n <= MESSAGE_SIGNATURE_MAX)
		return n;
	key->broken = !is_of_question(rv);
	refuse(why, "the token does not sign", rv == CKR_OK ? CKR_FUNCTION_FAILED : rv);
	return 0;
}
