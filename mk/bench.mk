# The benchmark: `make bench` measures vethguard beside haproxy, nginx, squid, sslsplit, mitmproxy and a bare relay (docs/performance.md).
BENCH_PROGRAMS := $(addprefix $(BUILD)/tests/bench/,origin load relay abuse)
BENCH_MODULE_PROGRAMS := $(addprefix $(BUILD)/tests/bench/,bench_policy bench_bodies bench_mask bench_codings bench_dlp bench_sign bench_recorder bench_tls)

$(BUILD)/tests/bench/net.o: tests/bench/net.c tests/bench/net.h
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE $(WARNINGS) $(CFLAGS) -c -o $@ $<
$(BENCH_PROGRAMS): $(BUILD)/tests/bench/%: tests/bench/%.c tests/bench/net.h $(BUILD)/tests/bench/net.o
	$(CC) -D_GNU_SOURCE $(WARNINGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^) $(BUILD)/tests/bench/net.o $(LIBS_SSL) $(LIBS_NGHTTP2)
$(BUILD)/tests/bench/load: tests/bench/load_http2.c tests/bench/load.h
$(BUILD)/tests/bench/bench_%: tests/bench/bench_%.c $(ALL_ARCHIVES)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(TEST_WARNINGS) $(CFLAGS) -MMD -MP $(LDFLAGS) -o $@ $< -Wl,--start-group $(ALL_ARCHIVES) -Wl,--end-group $(ALL_LIBS)

.PHONY: bench
## make bench           CPU per request, connection and GB beside other proxies (root; about ten minutes)
bench:
	@mk/install-packages build bench
	@$(MAKE) --no-print-directory bench-run

.PHONY: bench-run
bench-run: $(PROGRAMS) $(BENCH_PROGRAMS) $(BENCH_MODULE_PROGRAMS)
	python3 tests/bench/bench.py --extra $(BENCH_OPTIONS)

.PHONY: profile
## make profile SCENARIO=keepalive1  where the CPU time of one scenario of the benchmark goes: by process, library, function (root; perf)
profile:
	@mk/install-packages build
	@$(MAKE) --no-print-directory -s $(PROGRAMS) $(BENCH_PROGRAMS)
	@tests/bench/profile '$(SCENARIO)'

.PHONY: count
## make count SCENARIO=keepalive1    system calls and context switches per unit of one scenario, beside haproxy and the bare relay (root; strace)
count:
	@mk/install-packages build
	@$(MAKE) --no-print-directory -s $(PROGRAMS) $(BENCH_PROGRAMS)
	@tests/bench/count '$(SCENARIO)'

.PHONY: bench-attach
## make bench-attach    a thousand sandboxes on one daemon: latencies, memory, abuse (root; about six minutes)
bench-attach:
	@mk/install-packages build
	@$(MAKE) --no-print-directory bench-attach-run

.PHONY: bench-attach-run
bench-attach-run: $(PROGRAMS) $(BENCH_PROGRAMS)
	python3 tests/bench/bench_attach.py $(BENCH_ATTACH_OPTIONS)

.PHONY: bench-claim
## make bench-claim     a thousand prepared namespaces: what claiming and releasing one costs (root; about three minutes)
bench-claim:
	@mk/install-packages build
	@$(MAKE) --no-print-directory -s $(PROGRAMS) $(BENCH_PROGRAMS)
	python3 tests/bench/bench_claim.py $(BENCH_CLAIM_OPTIONS)

.PHONY: bench-gateway
## make bench-gateway   the gateway: what idle sessions take, how soon one has its worker, strangers (root; two minutes)
bench-gateway:
	@mk/install-packages build bench
	@$(MAKE) --no-print-directory -s $(PROGRAMS) $(BENCH_PROGRAMS)
	python3 tests/bench/bench_gateway.py $(BENCH_GATEWAY_OPTIONS)

.PHONY: bench-engines
## make bench-engines   what the guard adds to docker run, podman run, ctr run and RunPodSandbox, one at a time and 100 at once (root; ten minutes)
bench-engines:
	@mk/install-packages build test attach
	@$(MAKE) --no-print-directory -s all
	/usr/bin/python3 tests/bench/bench_engines.py $(BENCH_ENGINES_OPTIONS)

.PHONY: bench-long-ways
## make bench-long-ways 64 MB over round trips of 10, 60 and 150 ms, beside the same without vethguard (root; two minutes)
bench-long-ways:
	@mk/install-packages build test
	@$(MAKE) --no-print-directory -s all
	python3 tests/bench/bench_long_ways.py $(BENCH_LONG_WAYS_OPTIONS)

.PHONY: bench-scale
## make bench-scale     what a request costs against hosts in the policy and idle connections, as a plot (root; five minutes)
bench-scale:
	@mk/install-packages build bench
	@$(MAKE) --no-print-directory -s $(PROGRAMS) $(BENCH_PROGRAMS)
	python3 tests/bench/bench_scale.py $(BENCH_SCALE_OPTIONS)

$(BUILD)/tests/bench/bench_control_http: tests/bench/bench_control_http.c $(call archives,wire base)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(WARNINGS) $(CFLAGS) $(LDFLAGS) -o $@ $< $(call archives,wire base) -lmicrohttpd

.PHONY: bench-control-http
## make bench-control-http  bad heads of HTTP/1 that the control API's reader and libmicrohttpd accept (half a minute)
bench-control-http:
	@mk/install-packages build bench-control-http
	@$(MAKE) --no-print-directory -s $(BUILD)/tests/bench/bench_control_http
	@$(BUILD)/tests/bench/bench_control_http
