/* SPDX-License-Identifier: Apache-2.0 */
/* dlp/scan: keys of each format, samples that are none, and encodings inside of each other. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "dlp/patterns.h"
#include "vethguard/base/base64.h"
#include "vethguard/dlp/scan.h"

#define TEXT_MAX 65536u

static struct dlp_scanner *scanner;
static const struct dlp_question any = {0};

static const char *name_in(struct slice text)
{
	struct dlp_finding f;

	return dlp_scan(scanner, &any, text, &f) ? dlp_format_name(f.format) : "none";
}

static const char *name_of(const char *text)
{
	return name_in(slice_from_string(text));
}

/* The finding's codings in words; NULL: there is no finding. */
static const char *codings_of(struct slice text)
{
	static char out[DLP_CODINGS_TEXT_MAX];
	struct dlp_finding f;

	return dlp_scan(scanner, &any, text, &f) ? dlp_codings_text(&f, out) : NULL;
}

#define GITHUB "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"
#define ACCESS "AKIAIOSFODNN7QXM3PLZ"
#define SECRET "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"
#define R20 "x7Kp2mQ9vR4sL8nW1bY6"
#define R40 R20 "cT3fA0jH5dEuZ8gXoN2i"
#define R80 R40 "MlP4wS7aKqC1yVtR9hBe" R20
#define HEX32 "0f3a9c7e5b1d8642e7a09b3c5d1f6824"
#define UUID "3f2a9c7e-5b1d-4864-8e7a-09b3c5d1f682"
#define HEAD "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"

static const struct {
	const char *name, *text;
} keys[] = {
        {"github-token", GITHUB},
        {"github-token", "gho_" R40},
        {"github-fine-grained-token", "github_pat_" R20 "zz_" R80},
        {"gitlab-token", "glpat-" R20},
        {"npm-token", "npm_" R40},
        {"pypi-token", "pypi-AgEIcHlwaS5vcmcCJD" R80},
        {"aws-access-key", ACCESS},
        {"aws-secret-key", "aws_secret_access_key = " SECRET},
        {"aws-secret-key", "\"SecretAccessKey\": \"" SECRET "\""},
        {"aws-bedrock-key", "ABSKQmVkcm9ja0FQSUtleS" R80},
        {"google-api-key", "AIzaSyD" R40},
        {"google-oauth-token", "ya29.a0" R40},
        {"google-client-secret", "GOCSPX-" R40},
        {"azure-shared-key", "AccountKey=" R40 "aB9+/xQ2mQ9vR4sL8nW1bY6cT3fA0jH5dEuZ8gXoN2i=="},
        {"azure-client-secret", "abc8Q~" R40},
        {"stripe-key", "sk_live_" R20},
        {"stripe-key", "whsec_" R40},
        {"slack-token", "xoxb-123456789012-1234567890123-" R20},
        {"slack-webhook", "https://hooks.slack.com/services/T01ABCD23/B04EFGH56/" R20 "abcd"},
        {"openai-key", "sk-" R20 "T3BlbkFJ" R20},
        {"openai-key", "sk-proj-" R80},
        {"anthropic-key", "sk-ant-api03-" R80},
        {"hugging-face-token", "hf_" R40},
        {"sendgrid-key", "SG." R20 "zZ." R40 "abc"},
        {"mailgun-key", "key-" HEX32},
        {"mailchimp-key", HEX32 "-us12"},
        {"discord-webhook", "https://discord.com/api/webhooks/123456789012345678/" R80},
        {"telegram-token", "bot123456789:AAF" R40},
        {"shopify-token", "shpat_" HEX32},
        {"square-token", "sq0atp-" R40},
        {"digitalocean-token", "dop_v1_" HEX32 HEX32},
        {"doppler-token", "dp.pt." R40},
        {"linear-key", "lin_api_" R40},
        {"notion-token", "ntn_" R40},
        {"figma-token", "figd_" R40},
        {"postman-key", "PMAK-" HEX32 "-" HEX32},
        {"new-relic-key", "NRAK-ABCD2345EFGH6789JKLM234"},
        {"grafana-token", "glsa_x7Kp2mQ9vR4sL8nW1bY6cT3fA0jH5dEu_0f3a9c7e"},
        {"sentry-token", "sntrys_" R80},
        {"vault-token", "hvs." R40},
        {"terraform-token", "abcdefghij1234.atlasv1." R80},
        {"databricks-token", "dapi" HEX32},
        {"docker-hub-token", "dckr_pat_" R40},
        {"docker-swarm-token", "SWMTKN-1-" HEX32 HEX32},
        {"pulumi-token", "pul-" HEX32 "0f3a9c7e"},
        {"planetscale-token", "pscale_tkn_" R40},
        {"supabase-key", "sbp_" HEX32 "0f3a9c7e"},
        {"fly-token", "fm2_" R80},
        {"netlify-token", "nfp_" R40},
        {"atlassian-token", "ATATT3x" R80},
        {"jfrog-token", "AKCp" R80},
        {"rubygems-key", "rubygems_" HEX32 HEX32},
        {"nuget-key", "oy2a7kp2mq9vr4sl8nw1by6ct3fa0jh5deuz8gxon2ibc9"},
        {"clojars-token", "CLOJARS_" HEX32 HEX32},
        {"dynatrace-token", "dt0c01." R40 "." R80},
        {"age-key", "AGE-SECRET-KEY-1QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHC"},
        {"replicate-token", "r8_" R40},
        {"groq-key", "gsk_" R80},
        {"xai-key", "xai-" R80},
        {"perplexity-key", "pplx-" R40},
        {"langsmith-key", "lsv2_pt_" HEX32 "_0f3a9c7e5b"},
        {"pinecone-key", "pcsk_" R80},
        {"openrouter-key", "sk-or-v1-" HEX32 HEX32},
        {"together-key", "tgp_v1_" R40},
        {"elevenlabs-key", "sk_" HEX32 "0f3a9c7e5b1d8642"},
        {"mapbox-token", "sk.eyJ1Ijoi" R80},
        {"sonar-token", "squ_" HEX32 "0f3a9c7e"},
        {"prefect-token", "pnu_" R40},
        {"sourcegraph-token", "sgp_" HEX32 "0f3a9c7e"},
        {"brevo-key", "xkeysib-" HEX32 HEX32 "-" R20},
        {"typeform-token", "tfp_" R80},
        {"adafruit-key", "aio_" R20 "abcdEF23"},
        {"alibaba-access-key", "LTAI" R20},
        {"tencent-secret-id", "AKID" R40},
        {"duffel-token", "duffel_live_" R80},
        {"flutterwave-key", "FLWSECK-" HEX32 "-X"},
        {"infracost-key", "ico-" R20 "abcdEF2345gh"},
        {"plaid-token", "access-production-" UUID},
        {"hubspot-token", "pat-na1-" UUID},
        {"contentful-token", "CFPAT-" R80},
        {"dropbox-token", "sl." R80 R80},
        {"easypost-key", "EZAK" R80},
        {"razorpay-key", "rzp_live_" R20},
        {"tailscale-key", "tskey-auth-" R40},
        {"buildkite-token", "bkua_" HEX32 "0f3a9c7e"},
        {"circleci-token", "CCIPAT_" R80},
        {"nvidia-key", "nvapi-" R80},
        {"heroku-key", "HRKU-" UUID},
        {"generic-sk-key", "sk-" R40},
        {"vercel-token", "vercel_blob_rw_" R40},
        {"render-key", "rnd_" R20 "abcdEF2345"},
        {"jina-key", "jina_" R80},
        {"clickup-token", "pk_1234567_X7KP2MQ9VR4SL8NW1BY6CT3FA0JH5DEU"},
        {"jwt", HEAD ".eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"},
        {"private-key", "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n"},
        {"private-key", "{\"k\":\"-----BEGIN RSA PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG9w0BAQEF"},
        {"private-key", "-----BEGIN OPENSSH PRIVATE KEY-----\r\nb3BlbnNzaC1rZXktdjEAAAAABG5v"},
        {"private-key", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQOYBF8AAAABCADE0f3a9c7e"},
        {"private-key",
                "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEvQIBADANBgkqh"},
        {"putty-key", "PuTTY-User-Key-File-3: ssh-ed25519\n"},
};

static void test_every_format(void **state)
{
	uint8_t seen[DLP_FORMATS_MAX] = {0};
	unsigned count = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		char text[1024];

		assert_string_equal(name_of(keys[i].text), keys[i].name);
		snprintf(text, sizeof(text), "{\"a\": \"%s\", \"b\": 1}", keys[i].text);
		assert_string_equal(name_of(text), keys[i].name);
		snprintf(text, sizeof(text), "x=1&y=%s&z=2", keys[i].text);
		assert_string_equal(name_of(text), keys[i].name);
		seen[dlp_format_find(slice_from_string(keys[i].name))] = 1;
	}
	for (size_t i = 0; i < DLP_FORMATS_MAX; i++)
		count += seen[i];
	assert_true(count >= 60);
}

static void test_what_is_no_key(void **state)
{
	static const char *const texts[] = {"", "ghp_", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
	        "xghp_x7Kp2mQ9vR4sL8nW1bY6cT3fA0jH5dE", "ghp_" R20, "AKIAAAAAAAAAAAAAAAAA",
	        "AKIAIOSFODNN7QXM3PL", "AKIAIOSFODNN7QXM3PLZAB", "AKIAIOSFODNN1QXM3PLZ",
	        "SK_LIVE_" R40, "sk_live_xxxxxxxxxxxxxxxxxxxxxxxx",
	        "sk-fading-circle-container-wrapper-large-2", "risk-" R40, "eyJhbGciOiJIUzI1NiJ9",
	        "eyJmb28iOiJiYXIifQ.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcdefghij",
	        "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n",
	        "-----BEGIN PUBLIC KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n",
	        "is_pem(text, \"-----BEGIN PRIVATE KEY-----\", strlen(text_of_the_private_key))",
	        "new SecretKeySpec(x7Kp2mQ9vR4sL8nW1bY6cT3fA0jH5dEuZ8gXoN2i)",
	        "secret: /usr/share/doc/Package9/Examples/README/2024",
	        "is_pem(text, \"-----BEGIN PRIVATE KEY-----\", strlen(text_of_the_private_key))",
	        "new SecretKeySpec(x7Kp2mQ9vR4sL8nW1bY6cT3fA0jH5dEuZ8gXoN2i)",
	        "secret: /usr/share/doc/Package9/Examples/README/20",
	        "write -----BEGIN PRIVATE KEY----- first, then the key",
	        "secret: " HEX32 "0f3a9c7e", "secret: sha256-" R80,
	        "hf_model_of_the_day_that_is_long_enough", "key-" HEX32 "00", "monkey-" HEX32,
	        "https://hooks.slack.com/services/", "xoxb-your-token-goes-right-here",
	        "sha512-" R80 "==", "integrity sha1-" R20, HEX32 HEX32, UUID,
	        "pypi-AgEnotamacaroon" R80, "12345:AAF" R40, "access-production-" R40,
	        "/api/webhooks/incoming/" R80, "PuTTY-User-Key-File-x",
	        "sk-ant-vethguard-0123456789abcdef0123456789abcdef",
	        "ghp_vethguard0123456789abcdef01234567890"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_string_equal(name_of(texts[i]), "none");
}

/* A token with the right checksum needs no border. */
static void test_checksums(void **state)
{
	char token[] = "1" GITHUB "1";

	(void)state;
	assert_string_equal(name_of(token), "github-token");
	token[6] ^= 1;
	assert_string_equal(name_of(token), "none");
	assert_string_equal(name_of(token + 1), "github-token");
}

/* --- encodings --- */

static size_t encode_base64(const void *p, size_t n, char *out)
{
	return base64_encode(p, n, base64_standard, out);
}

static size_t encode_base64url(const void *p, size_t n, char *out)
{
	return base64_encode(p, n, base64_url, out);
}

static size_t encode_lines(const void *p, size_t n, char *out)
{
	char text[TEXT_MAX];
	size_t length = encode_base64(p, n, text), at = 0;

	for (size_t i = 0; i < length; i++) {
		if (i > 0 && i % 76 == 0)
			out[at++] = '\n';
		out[at++] = text[i];
	}
	return at;
}

static size_t encode_as(const void *p, size_t n, char *out, const char *before, const char *after)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		at += (size_t)sprintf(out + at, "%s%02x%s", before, ((const uint8_t *)p)[i], after);
	return at;
}

static size_t encode_hex(const void *p, size_t n, char *out)
{
	return encode_as(p, n, out, "", "");
}

static size_t encode_pairs(const void *p, size_t n, char *out)
{
	return encode_as(p, n, out, "", "-");
}

static size_t encode_percent(const void *p, size_t n, char *out)
{
	return encode_as(p, n, out, "%", "");
}

static size_t encode_json(const void *p, size_t n, char *out)
{
	return encode_as(p, n, out, "\\u00", "");
}

static size_t deflate_as(const void *p, size_t n, char *out, int bits)
{
	z_stream z = {.next_in = (uint8_t *)(uintptr_t)p,
	        .avail_in = (unsigned)n,
	        .next_out = (uint8_t *)out,
	        .avail_out = TEXT_MAX};

	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return z.total_out;
}

static size_t encode_gzip(const void *p, size_t n, char *out)
{
	return deflate_as(p, n, out, 31);
}

static size_t encode_zlib(const void *p, size_t n, char *out)
{
	return deflate_as(p, n, out, 15);
}

typedef size_t (*encoder)(const void *p, size_t n, char *out);
static const encoder encoders[] = {encode_base64, encode_base64url, encode_lines, encode_hex,
        encode_pairs, encode_percent, encode_json, encode_gzip, encode_zlib};
#define ENCODERS (sizeof(encoders) / sizeof(*encoders))

/* Encodes the text by the encoders of a number in base ENCODERS, the innermost first. */
static size_t nest(const char *text, unsigned depth, unsigned number, char *out)
{
	static char from[TEXT_MAX];
	size_t n = strlen(text);

	memcpy(out, text, n);
	for (unsigned i = 0; i < depth; i++, number /= ENCODERS) {
		memcpy(from, out, n);
		n = encoders[number % ENCODERS](from, n, out);
	}
	return n;
}

static void test_encodings_inside_of_each_other(void **state)
{
	static const char *const texts[] = {GITHUB, ACCESS};
	static char out[TEXT_MAX];
	unsigned count = 1;

	(void)state;
	for (unsigned depth = 1; depth <= DLP_DEPTH; depth++) {
		count *= ENCODERS;
		for (unsigned i = 0; i < count; i++)
			for (size_t t = 0; t < 2; t++) {
				size_t n = nest(texts[t], depth, i, out);

				if (strcmp(name_in(slice_of(out, n)), "none") == 0)
					print_error("depth %u, number %u\n", depth, i);
				assert_string_not_equal(name_in(slice_of(out, n)), "none");
			}
	}
}

/* Whatever stands before and behind it. */
static void test_base64_at_any_place(void **state)
{
	static char text[TEXT_MAX], inner[256];

	(void)state;
	for (size_t lead = 0; lead < 8; lead++)
		for (size_t before = 0; before < 5; before++) {
			int n = snprintf(inner, sizeof(inner), "%.*s%s, and so on", (int)lead,
			        "\x01\xff:{\"=/", GITHUB);
			size_t length = before;

			memset(text, 'Q', before);
			length += base64_encode(inner, (size_t)n, base64_standard, text + length);
			text[length++] = 'Q';
			assert_string_equal(name_in(slice_of(text, length)), "github-token");
		}
}

static void test_codings_are_told(void **state)
{
	static char out[TEXT_MAX];
	size_t n = encode_gzip(GITHUB, strlen(GITHUB), out);
	static char outer[TEXT_MAX];

	(void)state;
	assert_string_equal(codings_of(SLICE(GITHUB)), "");
	assert_string_equal(codings_of(slice_of(out, n)), "compression");
	n = encode_base64(out, n, outer);
	assert_string_equal(codings_of(slice_of(outer, n)), "compression in base64");
	assert_null(codings_of(SLICE("nothing")));
}

static void test_single_escapes_and_invisible_characters(void **state)
{
	static const char *const texts[] = {"ghp%5FzQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17",
	        "ghp\\u005fzQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17",
	        "ghp\\x5fzQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17",
	        "ghp_zQWBuTSO\xe2\x80\x8boRi4A9spHcVY5ncnsDkxkJ0mLq17",
	        "ghp_zQWBuTSO\\u200boRi4A9spHcVY5ncnsDkxkJ0mLq17",
	        "g\xc2\xadhp_zQWBuTSOoRi4\xef\xbb\xbf"
	        "A9spHcVY5ncnsDkxkJ0mLq17",
	        "%2567hp_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17",
	        "\\\\u0067hp_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_string_equal(name_of(texts[i]), "github-token");
}

/* Binary data in a text of JSON has short escapes as well. */
static void test_compressed_data_in_json(void **state)
{
	static char packed[TEXT_MAX], text[TEXT_MAX];
	size_t n = encode_gzip(GITHUB, strlen(GITHUB), packed), at = 0;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		static const char names[] = "bfnrt\"\\", bytes[] = "\b\f\n\r\t\"\\";
		const char *name = memchr(bytes, packed[i], sizeof(bytes) - 1);

		at += (size_t)(name ? sprintf(text + at, "\\%c", names[name - bytes])
		                    : sprintf(text + at, "\\u%04x", (uint8_t)packed[i]));
	}
	assert_string_equal(name_in(slice_of(text, at)), "github-token");
	assert_string_equal(name_of("xAKIAIOSFODNN7QXM3PLZx"), "aws-access-key");
}

/* Encoded data between other parts of a path. */
static void test_segments(void **state)
{
	static char text[TEXT_MAX], encoded[TEXT_MAX];
	static const encoder all[] = {encode_base64url, encode_hex, encode_pairs, encode_percent};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		int n = (int)all[i](ACCESS, strlen(ACCESS), encoded);

		snprintf(text, sizeof(text), "/a/b-c/%.*s/d?e=f", n, encoded);
		assert_string_equal(name_of(text), "aws-access-key");
	}
}

/* Pairs of hex digits, with any one sign between them, at any place of a text, also behind others.
 * Signs that differ make no pairs. */
static void test_pairs_with_any_sign(void **state)
{
	static const char signs[] = " :-_.,;|/\n\t\x01\xff=";
	static char text[TEXT_MAX], encoded[TEXT_MAX];

	(void)state;
	for (size_t i = 0; signs[i]; i++)
		for (int before = 0; before < 70; before++) {
			const char sign[] = {signs[i], '\0'};
			int n = (int)encode_as(ACCESS, strlen(ACCESS), encoded, "", sign);

			snprintf(text, sizeof(text),
			        "%.*s 00:11:22:33:44:55:66:77:88:99:aa:bb:cc:dd:ee:ff %.*s%s",
			        before,
			        "What comes before it moves it to every place between the probes, "
			        "one by "
			        "one.",
			        n, encoded, before % 2 ? " end" : "");
			assert_string_equal(name_of(text), "aws-access-key");
			encoded[2] = encoded[2] == '+' ? '*' : '+';
			encoded[5] = '~';
			encoded[35] = '^';
			snprintf(text, sizeof(text), "%.*s", n, encoded);
			assert_string_equal(name_of(text), "none");
		}
}

/* Deeper than DLP_DEPTH it is not searched. */
static void test_too_deep(void **state)
{
	static char out[TEXT_MAX];

	(void)state;
	assert_string_equal(name_in(slice_of(out, nest(GITHUB, DLP_DEPTH + 1, 0, out))), "none");
}

static void test_pieces(void **state)
{
	static char text[3 * DLP_OVERLAP];
	static const size_t pieces[] = {1, 7, 100, 1500, DLP_OVERLAP, DLP_OVERLAP + 1};

	(void)state;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++)
		for (size_t encoded = 0; encoded < 2; encoded++) {
			struct dlp_stream stream = {0};
			struct dlp_finding f;
			bool found = false;
			size_t n = encoded ? 2 * strlen(GITHUB) : strlen(GITHUB);

			memset(text, ' ', sizeof(text));
			if (encoded)
				encode_hex(GITHUB, strlen(GITHUB), text + DLP_OVERLAP - 20);
			else
				memcpy(text + DLP_OVERLAP - 20, GITHUB, n);
			for (size_t at = 0; at < sizeof(text); at += pieces[i]) {
				size_t left = sizeof(text) - at;

				found |= dlp_stream_scan(&stream, scanner, &any,
				        slice_of(text + at, left < pieces[i] ? left : pieces[i]),
				        &f);
			}
			assert_true(found);
		}
}

/* A text that is larger than a window, and a bomb. */
static void test_large_texts(void **state)
{
	size_t n = 1u << 20;
	char *text = malloc(n + 64), *packed = malloc(n);
	struct dlp_finding f;

	(void)state;
	assert_non_null(text);
	assert_non_null(packed);
	for (size_t at = 65400; at < 65600; at += 9) {
		memset(text, '.', n);
		memcpy(text + at, GITHUB, strlen(GITHUB));
		assert_true(dlp_scan(scanner, &any, slice_of(text, n), &f));
	}
	memset(text, 0, n);
	n = encode_gzip(text, n, packed);
	assert_false(dlp_scan(scanner, &any, slice_of(packed, n), &f));
	free(text);
	free(packed);
}

static bool passes_jwt(void *context, uint32_t format)
{
	(void)context;
	return dlp_format_is_common(format);
}

static void test_exceptions(void **state)
{
	struct dlp_set except = {0};
	const struct dlp_question q = {.except = &except, .passes = passes_jwt};
	struct dlp_finding f;

	(void)state;
	assert_true(dlp_scan(scanner, &q, SLICE(ACCESS " " GITHUB), &f));
	assert_string_equal(dlp_format_name(f.format), "aws-access-key");
	dlp_set_add(&except, dlp_format_find(SLICE("aws-access-key")));
	assert_true(dlp_scan(scanner, &q, SLICE(ACCESS " " GITHUB), &f));
	assert_string_equal(dlp_format_name(f.format), "github-token");
	dlp_set_add(&except, dlp_format_find(SLICE("github-token")));
	assert_false(dlp_scan(scanner, &q, SLICE(ACCESS " " GITHUB), &f));
	assert_false(dlp_scan(scanner, &q, SLICE(HEAD ".eyJzdWIiOiIxIn0.abcdefgh"), &f));
}

static void test_the_table(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < dlp_format_count(); i++)
		assert_int_equal(dlp_format_find(slice_from_string(dlp_format_name(i))), i);
	assert_int_equal(dlp_format_find(SLICE("no-format")), DLP_NONE);
	assert_string_equal(dlp_format_name(dlp_format_count()), "unknown");
	for (size_t i = 0; i < pattern_count; i++)
		assert_true(strlen(patterns[i].literal) >= 3);
	assert_true(pattern_count <= 256);
	assert_true(dlp_format_is_at_home(
	        dlp_format_find(SLICE("github-token")), SLICE("api.github.com")));
	assert_true(
	        dlp_format_is_at_home(dlp_format_find(SLICE("github-token")), SLICE("ghcr.io")));
	assert_false(dlp_format_is_at_home(
	        dlp_format_find(SLICE("github-token")), SLICE("evilgithub.com")));
	assert_false(dlp_format_is_at_home(
	        dlp_format_find(SLICE("github-token")), SLICE("github.com.evil")));
	assert_false(
	        dlp_format_is_at_home(dlp_format_find(SLICE("private-key")), SLICE("github.com")));
	assert_false(dlp_format_is_at_home(DLP_NONE, SLICE("github.com")));
}

static int open_scanner(void **state)
{
	(void)state;
	scanner = dlp_scanner_new();
	return scanner ? 0 : -1;
}

static int close_scanner(void **state)
{
	(void)state;
	dlp_scanner_free(scanner);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_every_format),
	        cmocka_unit_test(test_what_is_no_key),
	        cmocka_unit_test(test_checksums),
	        cmocka_unit_test(test_encodings_inside_of_each_other),
	        cmocka_unit_test(test_base64_at_any_place),
	        cmocka_unit_test(test_codings_are_told),
	        cmocka_unit_test(test_single_escapes_and_invisible_characters),
	        cmocka_unit_test(test_compressed_data_in_json),
	        cmocka_unit_test(test_segments),
	        cmocka_unit_test(test_pairs_with_any_sign),
	        cmocka_unit_test(test_too_deep),
	        cmocka_unit_test(test_pieces),
	        cmocka_unit_test(test_large_texts),
	        cmocka_unit_test(test_exceptions),
	        cmocka_unit_test(test_the_table),
	};

	return cmocka_run_group_tests(tests, open_scanner, close_scanner);
}
