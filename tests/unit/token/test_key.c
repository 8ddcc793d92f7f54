/* SPDX-License-Identifier: Apache-2.0 */
/* key: against a module whose answers the test chooses: those that no real token gives at will. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "token/keys.h"

#define GOOD_FLAGS (CKF_TOKEN_INITIALIZED | CKF_LOGIN_REQUIRED | CKF_USER_PIN_INITIALIZED)

/* The module's answers, set by the test. */
static struct {
	ck_ulong slots, flags, found, type, mechanism_flags, signature_n;
	ck_rv list, session, login, sign, mechanism;
	ck_byte may_sign, always;
	unsigned logins;
	size_t signed_n;
	ck_ulong signed_by, finds;
	struct ck_pss pss;
	bool no_pss;
} m;
static char why[KEY_WHY_MAX];
static struct pkcs11_uri uri;

static ck_rv get_slot_list(ck_byte present, ck_ulong *slots, ck_ulong *count)
{
	assert_int_equal(present, 1);
	for (ck_ulong i = 0; i < m.slots && i < *count; i++)
		slots[i] = i;
	*count = m.slots;
	return m.list;
}

static ck_rv get_token_info(ck_ulong slot, struct ck_token_info *info)
{
	(void)slot;
	memset(info, ' ', sizeof(*info));
	memcpy(info->label, "a\033[31m", 6);
	info->flags = m.flags;
	return CKR_OK;
}

static ck_rv open_session(
        ck_ulong slot, ck_ulong flags, void *context, void *notify, ck_ulong *session)
{
	(void)slot, (void)context, (void)notify;
	assert_int_equal(flags, CKF_SERIAL_SESSION); /* it is never opened to be changed */
	*session = 1;
	return m.session;
}

static ck_rv login(ck_ulong session, ck_ulong user, const ck_byte *pin, ck_ulong n)
{
	(void)session;
	assert_int_equal(user, CKU_USER);
	assert_memory_equal(pin, "1234", n);
	m.logins++;
	return m.login;
}

static ck_rv find_objects_init(ck_ulong session, struct ck_attribute *attributes, ck_ulong count)
{
	(void)session, (void)attributes;
	assert_int_equal(count, 2);
	return CKR_OK;
}

static ck_rv find_objects(ck_ulong session, ck_ulong *objects, ck_ulong most, ck_ulong *count)
{
	(void)session;
	assert_int_equal(most, 2);
	objects[0] = objects[1] = 7;
	m.finds++;
	*count = m.found;
	return CKR_OK;
}

static ck_rv find_objects_final(ck_ulong session)
{
	(void)session;
	return CKR_OK;
}

static ck_rv get_attribute_value(
        ck_ulong session, ck_ulong object, struct ck_attribute *a, ck_ulong count)
{
	(void)session;
	assert_int_equal(object, 7);
	assert_int_equal(count, 1);
	if (a->type == CKA_KEY_TYPE)
		memcpy(a->value, &m.type, sizeof(m.type));
	else
		memcpy(a->value, a->type == CKA_SIGN ? &m.may_sign : &m.always, 1);
	return CKR_OK;
}

static ck_rv get_mechanism_info(ck_ulong slot, ck_ulong mechanism, struct ck_mechanism_info *info)
{
	(void)slot;
	assert_true(mechanism == (m.type == CKK_RSA ? CKM_RSA_PKCS : CKM_ECDSA) ||
	            (m.type == CKK_RSA && mechanism == CKM_RSA_PKCS_PSS));
	info->flags = mechanism == CKM_RSA_PKCS_PSS && m.no_pss ? 0 : m.mechanism_flags;
	return m.mechanism;
}

static ck_rv sign_init(ck_ulong session, struct ck_mechanism *mechanism, ck_ulong key)
{
	(void)session;
	m.signed_by = mechanism->mechanism;
	m.pss = (struct ck_pss){0};
	if (mechanism->parameter) {
		assert_int_equal(mechanism->parameter_n, sizeof(m.pss));
		memcpy(&m.pss, mechanism->parameter, sizeof(m.pss));
	}
	assert_int_equal(key, 7);
	return CKR_OK;
}

static ck_rv sign(ck_ulong session, const ck_byte *data, ck_ulong n, ck_byte *out, ck_ulong *out_n)
{
	(void)session, (void)data;
	assert_int_equal(*out_n, MESSAGE_SIGNATURE_MAX);
	memset(out, 9, 64);
	m.signed_n = n;
	*out_n = m.signature_n;
	return m.sign;
}

static const struct ck_functions functions = {.version = {2, 40},
        .get_slot_list = get_slot_list,
        .get_token_info = get_token_info,
        .get_mechanism_info = get_mechanism_info,
        .open_session = open_session,
        .login = login,
        .get_attribute_value = get_attribute_value,
        .find_objects_init = find_objects_init,
        .find_objects = find_objects,
        .find_objects_final = find_objects_final,
        .sign_init = sign_init,
        .sign = sign};
static struct key key;

static int set_up(void **state)
{
	(void)state;
	memset(&m, 0, sizeof(m));
	m.slots = m.found = 1;
	m.flags = GOOD_FLAGS;
	m.type = CKK_EC;
	m.mechanism_flags = CKF_SIGN;
	m.may_sign = 1;
	m.signature_n = 64;
	key = (struct key){.functions = &functions};
	why[0] = 0;
	return pkcs11_uri_parse(SLICE("pkcs11:slot-id=0;object=x"), &uri) != NULL;
}

static void expect_no_token(const char *words)
{
	bool needs;

	assert_false(key_find_token(&key, &uri, &needs, why));
	assert_non_null(strstr(why, words));
	assert_null(strchr(why, '\033'));
	assert_int_equal(m.logins, 0);
}

static void test_tokens(void **state)
{
	static const struct {
		ck_ulong flags;
		const char *words;
	} cases[] = {
	        {GOOD_FLAGS & ~CKF_TOKEN_INITIALIZED, "no token"},
	        {GOOD_FLAGS & ~CKF_USER_PIN_INITIALIZED, "no user PIN"},
	        {GOOD_FLAGS | CKF_USER_PIN_LOCKED, "locked"},
	        {GOOD_FLAGS | CKF_USER_PIN_FINAL_TRY, "one attempt"},
	        {GOOD_FLAGS | CKF_PROTECTED_AUTHENTICATION_PATH, "pad"},
	};
	bool needs = false;

	(void)state;
	assert_true(key_find_token(&key, &uri, &needs, why));
	assert_true(needs);
	assert_null(strchr(key.token, '\033'));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		m.flags = cases[i].flags;
		expect_no_token(cases[i].words);
	}
	m.flags = CKF_TOKEN_INITIALIZED; /* one without a PIN */
	assert_true(key_find_token(&key, &uri, &needs, why));
	assert_false(needs);
	m.session = CKR_DEVICE_ERROR;
	expect_no_token("device error");
	m.list = 0x80000001UL;
	expect_no_token("error 0x80000001");
	m.list = CKR_OK;
	m.slots = 0;
	expect_no_token("no token");
	m.slots = 1000000; /* more than it was given room for */
	m.session = CKR_OK;
	assert_true(key_find_token(&key, &uri, &needs, why));
	assert_null(pkcs11_uri_parse(SLICE("pkcs11:token=%61%1b%5b31m;object=x"), &uri));
	expect_no_token("more than one");
}

static void test_logins(void **state)
{
	static const ck_rv wrong[] = {CKR_PIN_INCORRECT, CKR_PIN_INVALID, CKR_PIN_LEN_RANGE,
	        CKR_PIN_EXPIRED, CKR_PIN_LOCKED, CKR_DEVICE_ERROR, CKR_FUNCTION_FAILED};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		m.login = wrong[i];
		m.logins = 0;
		assert_false(key_log_in(&key, SLICE("1234"), why));
		assert_int_equal(m.logins, 1);
		assert_null(strstr(why, "1234"));
	}
	m.login = CKR_USER_ALREADY_LOGGED_IN;
	assert_true(key_log_in(&key, SLICE("1234"), why));
	m.login = CKR_OK;
	assert_true(key_log_in(&key, SLICE("1234"), why));
}

static void expect_no_key(const char *words)
{
	assert_false(key_find(&key, &uri, why));
	assert_non_null(strstr(why, words));
}

static void test_keys(void **state)
{
	(void)state;
	assert_true(key_find(&key, &uri, why));
	assert_int_equal(key.kind, MESSAGE_TOKEN_EC);
	m.found = 0;
	expect_no_key("no such private key");
	m.found = 2;
	expect_no_key("more than one such");
	m.found = 1000;
	expect_no_key("more than one such");
	m.found = 1;
	m.may_sign = 0;
	expect_no_key("CKA_SIGN");
	m.may_sign = m.always = 1;
	expect_no_key("CKA_ALWAYS_AUTHENTICATE");
	m.always = 0;
	m.mechanism_flags = 0;
	expect_no_key("CKM_ECDSA");
	m.mechanism_flags = CKF_SIGN;
	m.mechanism = CKR_MECHANISM_INVALID;
	expect_no_key("CKM_ECDSA");
	m.type = CKK_RSA;
	expect_no_key("CKM_RSA_PKCS");
	m.mechanism = CKR_OK;
	assert_true(key_find(&key, &uri, why));
	assert_int_equal(key.kind, MESSAGE_TOKEN_RSA);
	m.type = 0x40; /* Edwards */
	expect_no_key("neither RSA nor EC");
}

static void test_signatures(void **state)
{
	const struct slice digest = SLICE("0123456789abcdef0123456789abcdef");
	uint8_t out[MESSAGE_SIGNATURE_MAX];

	(void)state;
	assert_true(key_find(&key, &uri, why));
	assert_int_equal(key_sign(&key, MESSAGE_SCHEME_ANY, digest, out, why), 64);
	assert_int_equal(m.signed_n, 32);
	key.kind = MESSAGE_TOKEN_RSA;
	assert_int_equal(key_sign(&key, MESSAGE_SCHEME_ANY, digest, out, why), 64);
	assert_int_equal(m.signed_n, 19 + 32);
	m.signature_n = 0;
	assert_int_equal(key_sign(&key, MESSAGE_SCHEME_ANY, digest, out, why), 0);
	m.signature_n = MESSAGE_SIGNATURE_MAX + 1;
	assert_int_equal(key_sign(&key, MESSAGE_SCHEME_ANY, digest, out, why), 0);
	m.signature_n = 64;
	m.sign = CKR_DATA_LEN_RANGE;
	assert_int_equal(key_sign(&key, MESSAGE_SCHEME_ANY, digest, out, why), 0);
	assert_false(key.broken);
	m.sign = CKR_TOKEN_NOT_PRESENT;
	assert_int_equal(key_sign(&key, MESSAGE_SCHEME_ANY, digest, out, why), 0);
	assert_true(key.broken);
	assert_non_null(strstr(why, "not there"));
}

static void test_schemes(void **state)
{
	static const struct {
		uint16_t scheme;
		ck_ulong type, by, hash;
		size_t digest_n, signed_n;
	} cases[] = {
	        {MESSAGE_SCHEME_ECDSA_SHA256, CKK_EC, CKM_ECDSA, 0, 32, 32},
	        {MESSAGE_SCHEME_ECDSA_SHA384, CKK_EC, CKM_ECDSA, 0, 48, 48},
	        {MESSAGE_SCHEME_ECDSA_SHA512, CKK_EC, CKM_ECDSA, 0, 64, 64},
	        {MESSAGE_SCHEME_RSA_SHA256, CKK_RSA, CKM_RSA_PKCS, 0, 32, 51},
	        {MESSAGE_SCHEME_RSA_SHA384, CKK_RSA, CKM_RSA_PKCS, 0, 48, 67},
	        {MESSAGE_SCHEME_RSA_SHA512, CKK_RSA, CKM_RSA_PKCS, 0, 64, 83},
	        {MESSAGE_SCHEME_PSS_SHA256, CKK_RSA, CKM_RSA_PKCS_PSS, CKM_SHA256, 32, 32},
	        {MESSAGE_SCHEME_PSS_SHA384, CKK_RSA, CKM_RSA_PKCS_PSS, CKM_SHA384, 48, 48},
	        {MESSAGE_SCHEME_PSS_SHA512, CKK_RSA, CKM_RSA_PKCS_PSS, CKM_SHA512, 64, 64},
	};
	static const char digest[64] = "a digest";
	uint8_t out[MESSAGE_SIGNATURE_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		m.type = cases[i].type;
		assert_int_equal(message_scheme_digest_bytes(cases[i].scheme), cases[i].digest_n);
		assert_true(key_find(&key, &uri, why));
		assert_true(key_fits(&key, cases[i].scheme, why));
		assert_int_equal(key_sign(&key, cases[i].scheme,
		                         slice_of(digest, cases[i].digest_n), out, why),
		        64);
		assert_int_equal(m.signed_by, cases[i].by);
		assert_int_equal(m.signed_n, cases[i].signed_n);
		assert_int_equal(m.pss.hash, cases[i].hash);
		assert_int_equal(m.pss.salt_n, cases[i].hash ? cases[i].digest_n : 0);
		m.type = cases[i].type == CKK_RSA ? CKK_EC : CKK_RSA;
		assert_true(key_find(&key, &uri, why));
		assert_false(key_fits(&key, cases[i].scheme, why));
		assert_non_null(strstr(why, "not that of the certificate"));
	}
	m.type = CKK_RSA;
	m.no_pss = true;
	assert_true(key_find(&key, &uri, why));
	assert_true(key_fits(&key, MESSAGE_SCHEME_RSA_SHA256, why));
	assert_false(key_fits(&key, MESSAGE_SCHEME_PSS_SHA256, why));
	assert_non_null(strstr(why, "CKM_RSA_PKCS_PSS"));
}

static void test_many_keys(void **state)
{
	struct keys keys = {0};
	char text[64];
	bool needs;

	(void)state;
	assert_true(key_find_token(&key, &uri, &needs, why));
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < KEYS_MAX; i++) {
			snprintf(text, sizeof(text), "pkcs11:slot-id=0;object=k%d", i);
			assert_true(keys_select(&keys, &key, slice_from_string(text), why));
		}
	assert_int_equal(m.finds, KEYS_MAX);
	assert_true(keys_select(&keys, &key, SLICE("pkcs11:slot-id=0;object=more"), why));
	assert_true(keys_select(&keys, &key, SLICE("pkcs11:slot-id=0;object=k0"), why));
	assert_int_equal(m.finds, KEYS_MAX + 2); /* the oldest has made room */
	assert_false(keys_select(&keys, &key, SLICE("pkcs11:slot-id=1;object=k1"), why));
	assert_non_null(strstr(why, "not the one"));
	assert_false(keys_select(&keys, &key, SLICE("pkcs11:slot-id=0"), why));
	assert_non_null(strstr(why, "which key"));
	m.found = 0;
	assert_false(keys_select(&keys, &key, SLICE("pkcs11:slot-id=0;object=none"), why));
	assert_non_null(strstr(why, "no such private key"));
	assert_false(key.broken);
	assert_true(keys_select(&keys, &key, SLICE("pkcs11:slot-id=0;object=k5"), why));
}

static void test_modules(void **state)
{
	(void)state;
	assert_false(key_load_module(&key, "/nonexistent.so", why));
	assert_non_null(strstr(why, "cannot be loaded"));
	assert_false(key_load_module(&key, "/dev/null", why));
	assert_false(key_load_module(&key, "libc.so.6", why));
	assert_non_null(strstr(why, "not a PKCS #11 module"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_tokens, set_up),
	        cmocka_unit_test_setup(test_logins, set_up),
	        cmocka_unit_test_setup(test_keys, set_up),
	        cmocka_unit_test_setup(test_signatures, set_up),
	        cmocka_unit_test_setup(test_schemes, set_up),
	        cmocka_unit_test_setup(test_many_keys, set_up),
	        cmocka_unit_test_setup(test_modules, set_up)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
