/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "vethguard/wire/dns_lookup.h"

#define ID 0x1234
#define TYPE_CNAME 5

static struct dns_lookup lookup;
static struct dns_found found;
static uint8_t reply[DNS_LOOKUP_STREAM_MAX + 2];
static struct writer w;

static void ask(const char *host, uint16_t type)
{
	static const uint8_t mix[DNS_LOOKUP_MIX] = {0x05};

	assert_true(dns_lookup_write(&lookup, slice_from_string(host), type, ID, mix));
}

static void begin(uint16_t flags, uint16_t answers)
{
	w = writer_over(reply, sizeof(reply));
	writer_u16(&w, ID);
	writer_u16(&w, flags);
	writer_u16(&w, 1);
	writer_u16(&w, answers);
	writer_u32(&w, 0);
	writer_bytes(&w, lookup.bytes + 12, lookup.question_n);
}

static void record(const char *owner, size_t owner_n, uint16_t type, uint32_t ttl_s,
        const char *data, size_t data_n)
{
	writer_bytes(&w, owner, owner_n);
	writer_u16(&w, type);
	writer_u16(&w, 1);
	writer_u32(&w, ttl_s);
	writer_vector(&w, 2, slice_of(data, data_n));
}

#define RECORD(owner, type, ttl_s, data) \
	record(owner, sizeof(owner) - 1, type, ttl_s, data, sizeof(data) - 1)
#define OWN "\xc0\x0c"
#define FOUR "\1\2\3\4"

static enum dns_lookup_reply read_reply(void)
{
	assert_false(w.failed);
	return dns_lookup_read(&lookup, reply, w.len, &found);
}

/* --- questions --- */

static void test_a_question_as_it_is_sent(void **state)
{
	static const uint8_t mixed[] =
	        "\x12\x34\x01\x00\0\1\0\0\0\0\0\1\1A\2Bc\0\0\x1c\0\1\0\0\x29\x04\xd0\0\0\0\0\0\0";
	static const uint8_t plain[] = "\x12\x34\x01\x00\0\1\0\0\0\0\0\0\1a\2bc\0\0\1\0\1";

	(void)state;
	ask("a.bc", DNS_AAAA);
	assert_int_equal(lookup.n, sizeof(mixed) - 1);
	assert_memory_equal(lookup.bytes, mixed, sizeof(mixed) - 1);
	assert_true(dns_lookup_write(&lookup, SLICE("A.bC"), DNS_A, ID, NULL));
	assert_int_equal(lookup.n, sizeof(plain) - 1);
	assert_memory_equal(lookup.bytes, plain, sizeof(plain) - 1);
}

static void test_names_that_cannot_be_asked_for(void **state)
{
	char label[64], name[255];

	(void)state;
	memset(label, 'a', sizeof(label));
	memset(name, 'a', sizeof(name));
	for (size_t i = 63; i < sizeof(name); i += 64)
		name[i] = '.';
	assert_true(dns_lookup_write(&lookup, slice_of(label, 63), DNS_A, ID, NULL));
	assert_false(dns_lookup_write(&lookup, slice_of(label, 64), DNS_A, ID, NULL));
	assert_true(dns_lookup_write(&lookup, slice_of(name, 253), DNS_A, ID, NULL));
	assert_int_equal(lookup.question_n, DNS_NAME_MAX + 4);
	assert_false(dns_lookup_write(&lookup, slice_of(name, 254), DNS_A, ID, NULL));
	assert_false(dns_lookup_write(&lookup, SLICE(""), DNS_A, ID, NULL));
	assert_false(dns_lookup_write(&lookup, SLICE("a..b"), DNS_A, ID, NULL));
	assert_false(dns_lookup_write(&lookup, SLICE(".a"), DNS_A, ID, NULL));
}

/* --- replies that are not an answer --- */

static void test_strange_datagrams(void **state)
{
	static const struct {
		size_t at;
		uint8_t flip;
	} cases[] = {{0, 0x80}, {1, 1}, {2, 0x80}, {2, 0x08}, {5, 2}, {5, 1}, {13, 1}, {12, 2}};

	(void)state;
	ask("host.test", DNS_A);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		begin(0x8180, 1);
		RECORD(OWN, DNS_A, 60, FOUR);
		reply[cases[i].at] ^= cases[i].flip;
		assert_int_equal(read_reply(), DNS_LOOKUP_STRANGE);
		assert_int_equal(found.count, 0);
	}
	begin(0x8180, 0);
	reply[w.len - 3] = DNS_AAAA; /* the type */
	assert_int_equal(read_reply(), DNS_LOOKUP_STRANGE);
	for (size_t n = 0; n < 12 + lookup.question_n; n++)
		assert_int_equal(dns_lookup_read(&lookup, reply, n, &found), DNS_LOOKUP_STRANGE);
}

static void test_longer_than_was_offered(void **state)
{
	(void)state;
	ask("host.test", DNS_A);
	begin(0x8180, 1);
	RECORD(OWN, DNS_A, 60, FOUR);
	assert_int_equal(
	        dns_lookup_read(&lookup, reply, DNS_LOOKUP_REPLY_MAX, &found), DNS_LOOKUP_ANSWER);
	assert_int_equal(dns_lookup_read(&lookup, reply, DNS_LOOKUP_REPLY_MAX + 1, &found),
	        DNS_LOOKUP_STRANGE);
}

static void test_longer_over_tcp(void **state)
{
	(void)state;
	ask("host.test", DNS_A);
	lookup.reply_max = DNS_LOOKUP_STREAM_MAX;
	begin(0x8180, 1);
	RECORD(OWN, DNS_A, 60, FOUR);
	assert_int_equal(
	        dns_lookup_read(&lookup, reply, DNS_LOOKUP_STREAM_MAX, &found), DNS_LOOKUP_ANSWER);
	assert_int_equal(found.count, 1);
	assert_int_equal(dns_lookup_read(&lookup, reply, DNS_LOOKUP_STREAM_MAX + 1, &found),
	        DNS_LOOKUP_STRANGE);
	ask("host.test", DNS_A); /* the next one is a datagram again */
	begin(0x8180, 1);
	assert_int_equal(dns_lookup_read(&lookup, reply, DNS_LOOKUP_REPLY_MAX + 1, &found),
	        DNS_LOOKUP_STRANGE);
}

static void test_who_wants_it_plain(void **state)
{
	(void)state;
	ask("host.test", DNS_A);
	begin(0x8181, 0);
	assert_int_equal(read_reply(), DNS_LOOKUP_ASK_PLAIN);
	begin(0x8184, 0);
	reply[5] = 0;
	w.len = 12;
	assert_int_equal(read_reply(), DNS_LOOKUP_ASK_PLAIN);
	begin(0x8182, 0); /* without the question, anybody may have sent it */
	reply[5] = 0;
	w.len = 12;
	assert_int_equal(read_reply(), DNS_LOOKUP_STRANGE);
	begin(0x8180, 1);
	reply[13] = 'h'; /* was large */
	RECORD(OWN, DNS_A, 60, FOUR);
	assert_int_equal(read_reply(), DNS_LOOKUP_ASK_PLAIN);
	assert_int_equal(found.count, 0);

	assert_true(dns_lookup_write(&lookup, SLICE("host.test"), DNS_A, ID, NULL));
	begin(0x8181, 0);
	assert_int_equal(read_reply(), DNS_LOOKUP_ANSWER);
	assert_int_equal(found.rcode, DNS_FORMERR);
	begin(0x8180, 0);
	reply[13] = 'H';
	assert_int_equal(read_reply(), DNS_LOOKUP_STRANGE);
}

/* --- answers --- */

static void test_failures_and_cut_answers_have_no_addresses(void **state)
{
	static const uint16_t flags[] = {0x8182, 0x8183, 0x8185, 0x8380};

	(void)state;
	ask("host.test", DNS_A);
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		begin(flags[i], 1);
		RECORD(OWN, DNS_A, 60, FOUR);
		assert_int_equal(read_reply(), DNS_LOOKUP_ANSWER);
		assert_int_equal(found.count, 0);
		assert_int_equal(found.rcode, flags[i] & 15);
		assert_int_equal(found.truncated, flags[i] >> 9 & 1);
	}
}

static void test_records_that_are_not_the_names(void **state)
{
	(void)state;
	ask("host.test", DNS_A);
	begin(0x8180, 5);
	RECORD("\4evil\4test\0", DNS_A, 60, FOUR);
	RECORD("\4host\xc0\x0c", DNS_A, 60, FOUR); /* host.host.test */
	RECORD("\xc0\x11", DNS_A, 60, FOUR);       /* test */
	RECORD("\0", DNS_A, 60, FOUR);
	RECORD(OWN, DNS_AAAA, 60, "0123456789abcdef");
	RECORD(OWN, DNS_A, 60, FOUR); /* beyond the count: of another section */
	assert_int_equal(read_reply(), DNS_LOOKUP_ANSWER);
	assert_int_equal(found.count, 0);
}

static void test_another_class_does_not_count(void **state)
{
	(void)state;
	ask("host.test", DNS_A);
	begin(0x8180, 1);
	RECORD(OWN, DNS_A, 60, FOUR);
	reply[12 + lookup.question_n + 5] = 3;
	assert_int_equal(read_reply(), DNS_LOOKUP_ANSWER);
	assert_int_equal(found.count, 0);
}

static void test_the_name_written_out_in_other_letters(void **state)
{
	(void)state;
	ask("host.test", DNS_AAAA);
	begin(0x8180, 1);
	RECORD("\4HOST\4tESt\0", DNS_AAAA, 7, "0123456789abcdef");
	assert_int_equal(read_reply(), DNS_LOOKUP_ANSWER);
	assert_int_equal(found.count, 1);
	assert_int_equal(found.addresses[0].family, 6);
	assert_memory_equal(found.addresses[0].bytes, "0123456789abcdef", 16);
	assert_int_equal(found.ttl_s, 7);
}

static void test_broken_records(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
	} cases[] = {
#define CASE(bytes) {bytes, sizeof(bytes) - 1}
	        CASE(""),                                       /* none */
	        CASE("\xc0\x0c\0\1\0\1\0\0\0\0\0\4\1\2\3"),     /* cut */
	        CASE("\xc0\x0c\0\1\0\1\0\0\0\0\0\5\1\2\3\4\5"), /* a long address */
	        CASE("\xc0\x0c\0\1\0\1\0\0\0\0\0\0"),           /* none at all */
	        CASE("\xc0\x1b\0\1\0\1\0\0\0\0\0\4\1\2\3\4"),   /* a pointer to itself */
	        CASE("\xc0\x1d\0\1\0\1\0\0\0\0\0\4\1\2\3\4"),   /* forward */
	        CASE("\xff\xff\0\1\0\1\0\0\0\0\0\4\1\2\3\4"),   /* far beyond */
	        CASE("\xc0"),                                   /* half a pointer */
	        CASE("\x40"
	             "a\0\0\1\0\1\0\0\0\0\0\4\1\2\3\4"), /* no label, no pointer */
	        CASE("\x80"
	             "a\0\0\1\0\1\0\0\0\0\0\4\1\2\3\4"),
	        CASE("\1a\xc0\x1b\0\1\0\1\0\0\0\0\0\4\1\2\3\4"), /* to where it began */
	        CASE("\xc0\x0c\0\5\0\1\0\0\0\0\0\4\1a\0z"), /* an alias that ends before its data */
	        CASE("\xc0\x0c\0\5\0\1\0\0\0\0\0\2\1a\0"),  /* and one that ends after them */
	        CASE("\xc0\x0c\0\5\0\1\0\0\0\0\0\0"),
	};

	(void)state;
	ask("host.test", DNS_A);
	assert_int_equal(12 + lookup.question_n, 0x1b);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		begin(0x8180, 1);
		writer_bytes(&w, cases[i].bytes, cases[i].n);
		assert_int_equal(read_reply(), DNS_LOOKUP_BROKEN);
		assert_int_equal(found.count, 0);
	}
}

/* Pointers lead from label to label, each label once: together they are longer than a name may be.
 */
static void test_a_name_that_grows_by_its_pointers(void **state)
{
	char label[64] = "\77";
	size_t at;

	(void)state;
	memset(label + 1, 'a', 63);
	ask("host.test", DNS_A);
	begin(0x8180, 3);
	at = w.len;
	writer_bytes(&w, label, 64);
	record("\xc0\x0c", 2, DNS_A, 1, FOUR, 4);
	for (unsigned more = 0; more < 2; more++) {
		writer_bytes(&w, label, 64);
		writer_bytes(&w, label, 64);
		record((char[]){(char)(0xc0 | at >> 8), (char)at}, 2, DNS_A, 1, FOUR, 4);
		assert_int_equal(dns_lookup_read(&lookup, reply, w.len, &found), DNS_LOOKUP_BROKEN);
		at = w.len;
	}
}

/* A reply with this many aliases in a row; the reply holds the last one first. */
static enum dns_lookup_reply by_aliases(unsigned count)
{
	ask("a", DNS_A);
	begin(0x8180, (uint16_t)(count + 1));
	record((char[]){1, (char)('a' + count), 0}, 3, DNS_A, 50, FOUR, 4);
	for (unsigned i = count; i-- > 0;)
		record((char[]){1, (char)('A' + i), 0}, 3, TYPE_CNAME, 40 + i,
		        (char[]){1, (char)('a' + i + 1), 0}, 3);
	return read_reply();
}

static void test_aliases(void **state)
{
	(void)state;
	assert_int_equal(by_aliases(DNS_LOOKUP_ALIASES), DNS_LOOKUP_ANSWER);
	assert_int_equal(found.count, 1);
	assert_int_equal(found.ttl_s, 40);
	assert_int_equal(by_aliases(DNS_LOOKUP_ALIASES + 1), DNS_LOOKUP_BROKEN);
	assert_int_equal(found.count, 0);
	ask("a", DNS_A);
	begin(0x8180, 1);
	RECORD(OWN, TYPE_CNAME, 1, OWN); /* of itself */
	assert_int_equal(read_reply(), DNS_LOOKUP_BROKEN);
	begin(0x8180, 1);
	RECORD(OWN, TYPE_CNAME, 1, "\1b\0");
	assert_int_equal(read_reply(), DNS_LOOKUP_ANSWER); /* that has none */
	assert_int_equal(found.count, 0);
}

/* A reply that is slow to read: as many records as fit, each with a long name of short labels, and
 * aliases that make the reader look at all records again for each alias. */
static size_t many_long_names(unsigned aliases)
{
	char name[254];
	unsigned count = 0;
	size_t at;

	for (size_t i = 0; i < sizeof(name); i++)
		name[i] = (char)(i % 2 ? 'x' : 1);
	ask("a", DNS_A);
	lookup.reply_max = DNS_LOOKUP_STREAM_MAX;
	begin(0x8180, 0);
	for (; count < aliases; count++)
		record((char[]){1, (char)('a' + count), 0}, 3, TYPE_CNAME, 60,
		        (char[]){1, (char)('a' + count + 1), 0}, 3);
	at = w.len;
	writer_bytes(&w, name, sizeof(name));
	record("", 1, 16, 60, "", 0);
	for (count++; w.len + 12 <= DNS_LOOKUP_STREAM_MAX; count++)
		record((char[]){(char)(0xc0 | at >> 8), (char)at}, 2, 16, 60, "", 0);
	reply[6] = (uint8_t)(count >> 8);
	reply[7] = (uint8_t)count;
	return (size_t)(count - aliases) * (sizeof(name) + 1) * (aliases + 1);
}

static void test_names_are_looked_at_within_bounds(void **state)
{
	(void)state;
	assert_true(many_long_names(DNS_LOOKUP_ALIASES) > 10 * DNS_LOOKUP_NAME_BYTES);
	assert_int_equal(read_reply(), DNS_LOOKUP_BROKEN);
	assert_int_equal(found.count, 0);
	assert_true(many_long_names(0) > DNS_LOOKUP_NAME_BYTES);
	assert_int_equal(read_reply(), DNS_LOOKUP_BROKEN);
}

static void test_a_long_honest_answer(void **state)
{
	unsigned count = 0;

	(void)state;
	ask("a.host.with.a.few.labels.example", DNS_A);
	lookup.reply_max = DNS_LOOKUP_STREAM_MAX;
	begin(0x8180, 0);
	RECORD(OWN, TYPE_CNAME, 60, "\4pool\7example\0");
	for (count = 1; w.len + 28 <= DNS_LOOKUP_STREAM_MAX; count++)
		RECORD("\4pool\7example\0", DNS_A, 60, FOUR);
	reply[6] = (uint8_t)(count >> 8);
	reply[7] = (uint8_t)count;
	assert_true(count > 500);
	assert_int_equal(read_reply(), DNS_LOOKUP_ANSWER);
	assert_int_equal(found.count, DNS_LOOKUP_ADDRESSES);
}

static void test_more_addresses_than_are_kept(void **state)
{
	(void)state;
	ask("host.test", DNS_A);
	begin(0x8180, DNS_LOOKUP_ADDRESSES + 4);
	for (unsigned i = 0; i < DNS_LOOKUP_ADDRESSES + 4; i++)
		RECORD(OWN, DNS_A, i ? 60 : 0x80000001, FOUR);
	assert_int_equal(read_reply(), DNS_LOOKUP_ANSWER);
	assert_int_equal(found.count, DNS_LOOKUP_ADDRESSES);
	assert_int_equal(found.ttl_s, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_a_question_as_it_is_sent),
	        cmocka_unit_test(test_names_that_cannot_be_asked_for),
	        cmocka_unit_test(test_strange_datagrams),
	        cmocka_unit_test(test_longer_than_was_offered),
	        cmocka_unit_test(test_longer_over_tcp),
	        cmocka_unit_test(test_who_wants_it_plain),
	        cmocka_unit_test(test_failures_and_cut_answers_have_no_addresses),
	        cmocka_unit_test(test_records_that_are_not_the_names),
	        cmocka_unit_test(test_another_class_does_not_count),
	        cmocka_unit_test(test_the_name_written_out_in_other_letters),
	        cmocka_unit_test(test_broken_records),
	        cmocka_unit_test(test_a_name_that_grows_by_its_pointers),
	        cmocka_unit_test(test_aliases),
	        cmocka_unit_test(test_names_are_looked_at_within_bounds),
	        cmocka_unit_test(test_a_long_honest_answer),
	        cmocka_unit_test(test_more_addresses_than_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
