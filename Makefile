# What a person types. Each target is one idea; .ci/run calls check and test.
# The toolchain that is installed is used; none is downloaded.

CARGO ?= cargo
ENGINE ?= podman
# Below it `make install` puts man pages and completions.
PREFIX ?= $(HOME)/.local
# What the image can do: protocols, nodes, and `serve` for `--metrics` and a server in a container.
IMAGE_FEATURES := cluster,serve,mqtt,nats,redis,amqp091,amqp10,coap,zeromq
# Debian packages that the tests drive or measure with.
TEST_PACKAGES := binutils chromium chromium-driver iproute2 mosquitto mosquitto-clients openssl redis-server libcoap3-bin cyclonedds-dev cyclonedds-tools python3-venv libfastrtps-dev nodejs npm podman runc netavark openssh-client openssh-server prometheus prometheus-node-exporter valgrind python3 python3-zmq
# More of them for the systems that start slowly.
SLOW_PACKAGES := musl-tools iptables aardvark-dns catatonit rabbitmq-server maven default-jdk-headless
# Systems that pubmark installs by itself: all tests need them, and those that `make test-all` adds.
TEST_SYSTEMS := mochi nats zeromq zenoh
SLOW_SYSTEMS := valkey rumqttd aedes artemis hivemq

.DEFAULT_GOAL := help
.PHONY: help run install image image-full bench bench-write bars build-tests test test-all test-kubernetes test-slurm test-arm64 test-tenth test-packages test-systems test-clients check check-format check-lints check-docs check-sizes check-licences check-ci crate-map reference

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# MQTT alone: the other protocols and their libraries would only be waited for.
run: ## build and run the demonstration: smart-home on the built-in broker
	@$(CARGO) run --profile demo -p pubmark-cli --no-default-features --features mqtt --bin pubmark -- demo || { code=$$?; [ $$code -eq 5 ] || exit $$code; \
	  echo "make run: it works; the verdict above says why these figures are not to be believed" >&2; }

# Man pages and completions go where man and the shells of this user look for them; PREFIX=/usr/local for all users.
install: ## build the command with every protocol and put it where cargo puts programs, man pages and completions below PREFIX
	$(CARGO) install --locked --path crates/cli
	@PREFIX="$(PREFIX)" .ci/install-pages "$${CARGO_INSTALL_ROOT:-$${CARGO_HOME:-$$HOME/.cargo}}/bin/pubmark"

# Without the libraries that are loaded at run time or are not static. Needs `musl-gcc`, and podman or docker as ENGINE.
image: ## build a static program and an image of it, pubmark:VERSION
	@command -v musl-gcc >/dev/null 2>&1 || sh .ci/install-packages musl-tools
	rustup target add x86_64-unknown-linux-musl
	CC_x86_64_unknown_linux_musl=musl-gcc $(CARGO) build --release --target x86_64-unknown-linux-musl -p pubmark-cli \
	  --no-default-features --features $(IMAGE_FEATURES)
	rm -rf target/image
	mkdir -p target/image/root/bin target/image/root/tmp target/image/root/pubmark/credentials target/image/root/pubmark/workload
	chmod 1777 target/image/root/tmp
	cp target/x86_64-unknown-linux-musl/release/pubmark target/image/root/bin/
	cp containers/Dockerfile target/image/
	$(ENGINE) build -t pubmark:$$(target/image/root/bin/pubmark --version | cut -d' ' -f2) target/image

# With the libraries that it needs from this machine, Cyclone DDS among them: Debian's cyclonedds-dev.
image-full: ## the same with all protocols, also DDS and Zenoh: pubmark:VERSION-full
	$(CARGO) build --release -p pubmark-cli
	.ci/full-image target/release/pubmark target/image-full/root
	cp containers/Dockerfile target/image-full/
	$(ENGINE) build -t pubmark:$$(target/release/pubmark --version | cut -d' ' -f2)-full target/image-full

bench: ## measure what docs/results/cost.md shows; on a quiet machine, up to half an hour
	@.ci/install-perf-test
	@CARGO="$(CARGO)" .ci/install-mqttv5
	$(CARGO) build --release -p pubmark-bench
	target/release/pubmark-bench --csv target/cost.csv $(BENCH)

bench-write: BENCH = --repeat 5
bench-write: bench ## the same with more repetitions, and make docs/results/cost.csv and the tables of docs/results/cost.md from it
	cp target/cost.csv docs/results/cost.csv
	target/release/pubmark-bench page docs/results/cost.csv docs/results/cost.md

# Everything that the tests need, built once. Other selections of packages unify features in another way and would build much
# of it again, so the binary that this leaves in target/debug is the one that checks and tests use.
build-tests:
	$(CARGO) test --workspace --no-run

test: test-packages test-systems test-clients ## install what the tests need and run all but the slow ones
	@CARGO="$(CARGO)" .ci/run-tests
	@echo
	@echo "make test: ALL TESTS PASSED"
	@cat target/test-logs/unsteady

# Client libraries of the programs in clients/, the packages of the Python client, and what drives a browser, from their registries.
test-clients:
	@sh .ci/install-clients paho mqttjs python browser

test-systems: build-tests
	@sh .ci/install-systems target/debug/pubmark $(TEST_SYSTEMS)

test-all: test ## the same, the systems that start slowly (RabbitMQ, Artemis, HiveMQ), a hundred runs on busy machines, a Compose file run by podman, a Kubernetes of one node, a Slurm of four, links by the kernel in a virtual machine, ten minutes of fuzzing a parser, a million messages against the lying broker, the long form of the hostile suite
	@sh .ci/install-packages $(SLOW_PACKAGES)
	@sh .ci/install-systems target/debug/pubmark $(SLOW_SYSTEMS)
	$(CARGO) test --workspace --no-fail-fast --test slow_systems --test rabbitmq --test amqp10 --test zenoh --test dds_peers --test documents -- --ignored
	$(MAKE) image ENGINE=podman
	@sh .ci/install-clients compose
	$(CARGO) test --workspace --test e2e -- --ignored --nocapture
	$(CARGO) test --workspace --test truth -- --ignored
	CARGO="$(CARGO)" .ci/kernel-netem target/debug/pubmark
	$(MAKE) test-kubernetes
	$(MAKE) test-slurm
	$(MAKE) test-arm64
	PUBMARK_FUZZ_S=600 $(CARGO) test --workspace --test fuzz -- --nocapture
	PUBMARK_HOSTILE=full $(CARGO) test --workspace --test hostile
	@echo
	@echo "make test-all: ALL TESTS PASSED"

# Its programs are built from source, once: ten minutes. KUBE is the folder for them (target/kubernetes).
test-kubernetes: build-tests ## deployments on a Kubernetes of one node in namespaces of its own; needs root, cgroup v1 and Go
	.ci/kubernetes/test target/debug/pubmark

test-slurm: build-tests ## jobs on a Slurm of four nodes on this machine; needs root
	@sh .ci/install-packages slurmctld slurmd slurm-client munge mosquitto
	.ci/slurm/test target/debug/pubmark

test-arm64: build-tests ## a build for ARM64, under qemu's user emulation
	@sh .ci/install-packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
	CARGO="$(CARGO)" .ci/arm64 target/debug/pubmark

test-tenth: build-tests ## a tenth of what `make test-all` adds, another one each day (TENTH=0 to 9 for a certain one)
	@CARGO="$(CARGO)" .ci/rotating-tenth $(TENTH)

bars: test-packages ## the statistical bars, as often as they say; on a quiet machine, about two hours
	PUBMARK_BARS=full $(CARGO) test --workspace --test bars -- --nocapture --test-threads 1
	$(CARGO) test --workspace --test truth -- --ignored --nocapture a_thousand_runs

test-packages:
	@sh .ci/install-packages $(TEST_PACKAGES)

check: check-format check-lints check-docs check-sizes check-licences check-ci ## formatting, lints, documentation, file sizes, licences, the scripts of .ci
	@echo
	@echo "make check: ALL CHECKS PASSED"

check-format:
	$(CARGO) fmt --all -- --check

check-lints:
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	@began=$$(date +%s); $(CARGO) clippy -p pubmark-cli --no-default-features --features mqtt -- -D warnings && \
	  echo "check-lints: the build with MQTT alone took $$(($$(date +%s) - began)) s"

check-docs: build-tests
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items
	target/debug/pubmark reference --check docs/reference
	.ci/crate-map --check

check-sizes:
	@sh .ci/file-sizes

# `cargo deny check` judges all of deny.toml, where cargo-deny is installed and its database can be fetched.
check-licences:
	@.ci/licences check

check-ci:
	python3 -B -m unittest discover -s tests/ci

crate-map: ## write the map of crates in CONTRIBUTING.md again
	.ci/crate-map

reference: ## write the generated pages of docs/reference again
	$(CARGO) run -q -p pubmark-cli --bin pubmark -- reference docs/reference

