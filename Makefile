# Everything is driven from here; `make help` lists the targets.

# The pinned tools: their only mention. Go itself is pinned in go.mod.
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
PROTOC_GO   = google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
PROTOC_GRPC = google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
BENCHSTAT   = golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da

# Build settings.
VERSION    ?= $(shell git describe --tags --dirty 2>/dev/null)
LDFLAGS     = -s -w -X github.com/foldlog/foldlog/internal/version.number=$(VERSION)
PLATFORMS   = linux/arm64 darwin/arm64 windows/amd64
RELEASES    = linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

# Container settings: the processor, where certificates of public authorities may lie, and
# what else the building program is told (such as --isolation=chroot).
ARCH           ?= $(shell go env GOARCH)
CERTS          ?= /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem
CONTAINERFLAGS ?=

# Test settings.
PKG        ?= ./...
TIMEOUT    ?= 15m
FUZZTIME   ?= 10s
SOAK       ?= 10m
BENCH      ?= .
BENCHCOUNT ?= 1
PYTHON     ?= /usr/bin/python3
SEEDS      ?= 20
SCALE      ?= 1
MINUTES    ?= 60
RATE       ?= 1000

.DEFAULT_GOAL := help
.PHONY: help build demo test unit race fmt vet tags lint cross clean ui browser pictures oracle optuna fuzz soak soak-ui bench benchstat bench-server bench-search bench-ui bench-optuna guide-charts proto release container

help: ## List the targets
	@awk -F':.*## ' '/^##@ /{printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## /{printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Every day

build: ui ## Build ./foldlog, its dashboard in it
	go build -trimpath -ldflags '$(LDFLAGS)' -o foldlog ./cmd/foldlog

demo: build ## Build foldlog and run its demonstration
	./foldlog demo

test: fmt vet tags unit race ## Run everything that must pass before a change is merged

unit: ## Run the tests: PKG=./journal/...
	go test -timeout $(TIMEOUT) $(PKG)

race: ## Run the short tests under the race detector: PKG=./journal/...
	@if [ -z "$$CI" ] && ! command -v "$$(go env CC)" >/dev/null; then \
		echo "race: left out, the race detector needs a C compiler"; exit 0; fi; \
	GORACE=atexit_sleep_ms=0 CGO_ENABLED=1 go test -race -short -timeout $(TIMEOUT) $(PKG)

fmt: ## Fail if gofmt would change a file
	@changed=$$(gofmt -l .); if [ -n "$$changed" ]; then echo "gofmt would change:"; echo "$$changed"; exit 1; fi

vet: ## Run go vet
	go vet $(PKG)

tags: ## Build as users do: with Go alone, with and without the built page
	CGO_ENABLED=0 go build -o /dev/null ./cmd/foldlog
	CGO_ENABLED=0 go build -tags no_ui -o /dev/null ./cmd/foldlog

lint: fmt vet ## Run staticcheck (staticcheck.conf) besides gofmt and go vet
	go run $(STATICCHECK) $(PKG)

cross: ## Build and vet for the other platforms
	@set -e; for platform in $(PLATFORMS); do \
		echo "cross $$platform"; \
		CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} go build $(PKG); \
		CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} go vet $(PKG); \
	done

clean: ## Remove what make built
	rm -rf foldlog dist ui/dist/assets ui/dist/*.*

##@ The dashboard, which Node builds

ui: ui/dist/index.html ## Build the dashboard (needs Node; without it foldlog is built without a dashboard)

UI_SOURCES = $(shell find ui/src ui/public -type f) $(wildcard ui/*.json ui/*.ts ui/*.html)

ui/dist/index.html: $(UI_SOURCES)
	@if [ -z "$$CI" ] && ! command -v npm >/dev/null; then \
		echo "ui: left out, the dashboard is built by Node"; exit 0; fi; \
	if ! node ui/node.cjs; then \
		if [ -n "$$CI" ]; then exit 1; fi; echo "ui: left out"; exit 0; fi; \
	set -e; npm ci --prefix ui --no-audit --no-fund; npm run --prefix ui build; touch $@

browser: build ## Test the dashboard in Debian's headless Chromium, on logs that are being written
	@node ui/node.cjs
	node --test --test-concurrency=1 --test-reporter=spec ui/tests/*.test.mjs

pictures: build ## Make the pictures of the guide from the demonstration's logs
	@node ui/node.cjs
	node ui/tests/pictures.mjs docs/guide/pictures

##@ Search for faults, and hold it against the real thing

oracle: ## Hold the Lance tables against the real library (needs Node)
	npm ci --prefix lance/oracle --no-audit --no-fund
	CI=true go test -timeout $(TIMEOUT) ./lance/...

optuna: build ## Hold the Optuna server against Optuna's real client: OPTUNA=checkout
	PYTHON='$(PYTHON)' study/optuna/realclient/run.sh test '$(OPTUNA)' ./foldlog

fuzz: ## Run every fuzz target for FUZZTIME
	@set -e; go list -f '{{.Dir}} {{.ImportPath}}' $(PKG) | while read -r dir pkg; do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(f \*testing\.F).*/\1/p' "$$dir"/*_test.go 2>/dev/null); do \
			echo "fuzz $$pkg $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$pkg" </dev/null; \
		done; \
	done

soak: ## Run the tests named TestSoak... for SOAK each
	FOLDLOG_SOAK=$(SOAK) go test -count 1 -timeout 24h -v -run '^TestSoak' $(PKG)

soak-ui: build ## Watch the memory of open pages while MINUTES=60 of RATE=1000 events a second are written
	MINUTES='$(MINUTES)' RATE='$(RATE)' node ui/tests/hour.mjs

##@ Measure

bench: ## Run the benchmarks: BENCH=regexp, BENCHCOUNT=n, PKG=./journal
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(BENCHCOUNT) -timeout 2h $(PKG)

benchstat: ## Compare two saved outputs of make bench: OLD=file NEW=file
	go run $(BENCHSTAT) $(OLD) $(NEW)

bench-server: ## Load a server on loopback: SCALE=part of 30,000 runs, 11 million points, 50,000 trials, a million items; ROOT=dir keeps them
	@rm -rf $${TMPDIR:-/tmp}/foldlog-bench-*
	FOLDLOG_BENCH_SCALE=$(SCALE) FOLDLOG_BENCH_ROOT='$(ROOT)' go test -run '^$$' -bench 'Calls|Restart|Ingest' -benchtime 2s -timeout 30m ./server; \
		status=$$?; rm -rf $${TMPDIR:-/tmp}/foldlog-bench-*; exit $$status

bench-search: ## Compare the samplers with Optuna's: PYTHON=interpreter, SEEDS=n
	nice go run ./internal/benchsearch -markdown -python '$(PYTHON)' -seeds $(SEEDS)

bench-ui: build ## Measure how soon every view of a large root is there: SCALE=part of it
	SCALE='$(SCALE)' node ui/tests/large.mjs

bench-optuna: build ## Compare the Optuna server with Optuna's own: OPTUNA=checkout
	PYTHON='$(PYTHON)' study/optuna/realclient/run.sh bench '$(OPTUNA)' ./foldlog

##@ Make files that are kept, and releases

guide-charts: ## Draw the charts of the guide again, from its own commands
	FOLDLOG_BLESS=1 go test -count 1 -run 'TestDocumentsSayWhatHappens/docs/guide/analysis.md' ./cmd/foldlog

proto: ## Generate the code of the Optuna service anew (needs protoc 3.21.12)
	@set -e; bin=$$(mktemp -d); trap 'rm -rf "$$bin"' EXIT; \
	GOBIN=$$bin go install $(PROTOC_GO); GOBIN=$$bin go install $(PROTOC_GRPC); \
	PATH="$$bin:$$PATH" protoc --proto_path=. --go_out=. --go_opt=paths=source_relative \
		--go-grpc_out=. --go-grpc_opt=paths=source_relative study/optuna/optunapb/storage.proto

release: ui ## Archives for every platform and their checksums, in dist
	@set -e; rm -rf dist; mkdir -p dist; version='$(VERSION)'; version=$${version:-dev}; version=$${version#v}; \
	for platform in $(RELEASES); do \
		os=$${platform%/*}; arch=$${platform#*/}; name=foldlog-$$version-$$os-$$arch; exe=foldlog; \
		if [ $$os = windows ]; then exe=foldlog.exe; fi; \
		echo "release $$name"; mkdir dist/$$name; cp README.md LICENSE CHANGELOG.md dist/$$name; \
		CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch go build -trimpath -buildvcs=false -ldflags "$(LDFLAGS)" -o dist/$$name/$$exe ./cmd/foldlog; \
		if [ $$os = windows ]; then go run ./internal/archive dist/$$name dist/$$name.zip; \
		else go run ./internal/archive dist/$$name dist/$$name.tar.gz; fi; \
		rm -r dist/$$name; \
	done; \
	cd dist && sha256sum foldlog-* > SHA256SUMS && cat SHA256SUMS

container: ui ## Build the container image, with podman, buildah or docker: ARCH=arm64 for another processor
	@set -e; tool=$$(command -v podman || command -v buildah || command -v docker) || { echo "container: there is no podman, buildah or docker" >&2; exit 1; }; \
	certs=$$(ls $(CERTS) 2>/dev/null | head -n 1); test -n "$$certs" || { echo "container: there are no certificates of authorities, install ca-certificates" >&2; exit 1; }; \
	in=dist/container; rm -rf $$in; mkdir -p $$in/root/usr/local/bin $$in/root/etc/ssl/certs $$in/root/tmp $$in/data $$in/config; \
	chmod 1777 $$in/root/tmp; cp "$$certs" $$in/root/etc/ssl/certs/ca-certificates.crt; \
	echo 'foldlog:x:65532:65532::/tmp:/sbin/nologin' > $$in/root/etc/passwd; echo 'foldlog:x:65532:' > $$in/root/etc/group; \
	CGO_ENABLED=0 GOOS=linux GOARCH=$(ARCH) go build -trimpath -buildvcs=false -ldflags "$(LDFLAGS)" -o $$in/root/usr/local/bin/foldlog ./cmd/foldlog; \
	case $$tool in *docker) format=;; *) format='--format docker';; esac; \
	$$tool build $$format --platform linux/$(ARCH) $(CONTAINERFLAGS) -f Containerfile -t foldlog $$in
