/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_sign: what a credential in a request costs, in CPU time. First a head with a bearer token
 * beside the same head without. Then what a signature costs (inject: sigv4): one request without a
 * body, as the AWS SDKs send it: all that is done for it and not for a request by bearer. Then
 * bodies that are signed in chunks of 64 KiB, beside one pass of SHA-256 over the same bytes.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cpu.h"
#include "proxy/exchange/exchange.h"
#include "proxy/signing/signature.h"
#include "proxy/signing/signing.h"

#define ROUNDS 200000
#define CHUNK 65536u
#define CHUNKS 4096u
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

static const char own[] =
        "AWS4-HMAC-SHA256 Credential=AKIDSANDBOX/20260101/us-east-1/dynamodb/aws4_request, "
        "SignedHeaders=amz-sdk-invocation-id;amz-sdk-request;content-type;host;x-amz-content-"
        "sha256;"
        "x-amz-date;x-amz-target;x-amz-user-agent, Signature=" ZEROS;

static void must(bool fact)
{
	if (!fact)
		exit(1);
}

static void fill(struct http_request *r)
{
	static const struct slice fields[][2] = {{{"Authorization", 13}, {own, sizeof(own) - 1}},
	        {{"Content-Type", 12}, {"application/x-amz-json-1.0", 26}},
	        {{"X-Amz-Target", 12}, {"DynamoDB_20120810.GetItem", 25}},
	        {{"X-Amz-Date", 10}, {"20260101T000000Z", 16}},
	        {{"x-amz-content-sha256", 20}, {SIGV4_EMPTY, 64}},
	        {{"x-amz-user-agent", 16}, {"aws-sdk-js/3.1000.0 md/nodejs#20", 32}},
	        {{"amz-sdk-invocation-id", 21}, {"12345678-1234-1234-1234-123456789012", 36}},
	        {{"amz-sdk-request", 15}, {"attempt=1; max=3", 16}},
	        {{"User-Agent", 10}, {"aws-sdk-js/3.1000.0 ua/2.1 os/linux", 35}},
	        {{"Accept", 6}, {"*/*", 3}}};

	r->fields.count = 0;
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		http_add(&r->fields, fields[i][0], fields[i][1]);
}

static void bench_head(void)
{
	const struct policy_credential spec = {.inject = POLICY_INJECT_SIGV4,
	        .field = SLICE("us-east-1"),
	        .prefix = SLICE("dynamodb")};
	struct exchange *ex = calloc(1, sizeof(*ex));
	struct proxy *proxy = calloc(1, sizeof(*proxy));
	struct signing signing = {.exchange = ex};
	struct credential_value value = {0};
	struct http_request *r = &ex->request;
	const char *error;
	double begin;

	must(ex && proxy && hmac_init(&proxy->hmac) == 0);
	must(secret_alloc(&proxy->secret_text, SECRET_MAX) == 0);
	value.aws = aws_keys_new(
	        SLICE("AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), &error);
	must(value.aws);
	ex->proxy = proxy;
	ex->credential = &value;
	ex->signing = &signing;
	r->method = SLICE("POST");
	r->path[0] = '/';
	r->path_n = 1;
	strcpy(r->authority.host, "dynamodb.us-east-1.amazonaws.com");
	r->authority.host_n = strlen(r->authority.host);
	begin = cpu_seconds();
	for (int i = 0; i < ROUNDS; i++) {
		struct buf text = proxy_secret_text(proxy, SECRET_TEXT);
		struct outgoing head = {.request = r, .secret = true};
		struct signature claim;

		fill(r);
		for (int k = 0; k < 2; k++) { /* the verdict, and what the body needs */
			signature_read(r, &claim);
			must(!signature_check(&claim, &spec));
		}
		must(signing_sign(ex, &spec, &head, &text) == 0 && head.field_count == 2);
		secret_wipe(text.mem, text.len);
	}
	printf("signed head, no body: %.2f us\n", (cpu_seconds() - begin) / ROUNDS * 1e6);
}

/* Bytes written per round do not matter: the same fields, and one more. */
static double write_heads(const struct outgoing *head, struct buf *text)
{
	double begin = cpu_seconds();

	for (int i = 0; i < ROUNDS; i++) {
		buf_consume(text, text->len);
		must(http1_write_request(text, head) == 0);
		if (head->secret)
			secret_wipe(buf_bytes(text), text->len);
	}
	return (cpu_seconds() - begin) / ROUNDS * 1e6;
}

static void bench_bearer(void)
{
	struct http_request *r = calloc(1, sizeof(*r));
	struct outgoing head = {.request = r};
	struct buf text;
	double plain, bearer;

	must(r != NULL);
	buf_init(&text, 1 << 16);
	fill(r);
	r->fields.items[0].dropped = true;
	r->method = SLICE("POST");
	r->path[0] = '/';
	r->path_n = 1;
	strcpy(r->authority.host, "dynamodb.us-east-1.amazonaws.com");
	r->authority.host_n = strlen(r->authority.host);
	plain = write_heads(&head, &text);
	head.secret = true;
	head.field_count = 1;
	head.fields[0] = (struct outgoing_field){
	        SLICE("authorization"), SLICE("Bearer ghp_16C7e42F292c6912E7710c838347Ae178B4a")};
	bearer = write_heads(&head, &text);
	printf("head written: %.2f us; with a bearer token, and wiped: %.2f us\n", plain, bearer);
	buf_fini(&text);
	free(r);
}

static void bench_chunks(void)
{
	static uint8_t data[CHUNK];
	static const char line[] = "10000;chunk-signature=" ZEROS "\r\n";
	struct sigv4_scope scope = {
	        .time = "20260101T000000Z", .region = SLICE("us-east-1"), .service = SLICE("s3")};
	const uint8_t key[HMAC_BYTES] = {1};
	char hex[SIGV4_HEX + 1];
	struct aws_chunked c;
	struct hmac hmac;
	double begin, hashed, chunked;

	must(hmac_init(&hmac) == 0);
	begin = cpu_seconds();
	for (unsigned i = 0; i < CHUNKS; i++)
		must(sigv4_payload_hex(&hmac, slice_of(data, CHUNK), hex) == 0);
	hashed = cpu_seconds() - begin;
	must(aws_chunked_init(&c, &hmac, key, &scope, SIGV4_EMPTY, false) == 0);
	begin = cpu_seconds();
	for (unsigned i = 0; i < CHUNKS; i++) {
		must(aws_chunked_take(&c, (const uint8_t *)line, sizeof(line) - 1) == 0);
		must(aws_chunked_take(&c, data, CHUNK) == 0);
		must(aws_chunked_take(&c, (const uint8_t *)"\r\n", 2) == 0);
		aws_chunked_sent(&c, c.ready);
	}
	chunked = cpu_seconds() - begin;
	printf("SHA-256: %.2f GB/s; signed in chunks of 64 KiB: %.2f GB/s, %.3f of it\n",
	        (double)CHUNK * CHUNKS / hashed / 1e9, (double)CHUNK * CHUNKS / chunked / 1e9,
	        chunked / hashed);
	aws_chunked_fini(&c);
}

int main(void)
{
	bench_bearer();
	bench_head();
	bench_chunks();
	return 0;
}
