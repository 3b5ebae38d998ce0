"""Names of products, languages and standards that are spelt as code, files or tickets are. Pure.

"Never open a pull request on GitHub without asking" names no code: `GitHub` is written as a class is, `Node.js` as a
file, `ISO-8601` as a ticket. None of them belongs to one project.
"""

from __future__ import annotations

import re

_LIKE_CODE = """
    ActionScript ActiveMQ AppleScript ArgoCD AsciiDoc BibTeX BigQuery BitBucket BuildKit CamelCase camelCase CentOS
    ChatGPT CircleCI ClickHouse CloudFlare CloudFormation CloudFront CloudWatch CockroachDB CodeQL CoffeeScript
    CommonMark CouchDB DataDog DataGrip DeepSeek DevOps DevSecOps DigitalOcean DockerHub DuckDB DynamoDB ElasticSearch
    ElastiCache eMail EventBridge ExpressJS FastAPI FluxCD FreeBSD GitFlow GitHub GitLab GitOps GoLand GoLang GraphQL
    HuggingFace IaC iCloud ImageMagick InfluxDB IntelliJ iOS iPad iPadOS iPhone JavaScript JetBrains jQuery JupyterLab
    kebabCase LangChain LaTeX LaunchDarkly LinkedIn LlamaIndex lowerCamelCase macOS MacOS MariaDB MinIO MkDocs MLOps
    MongoDB MySQL NeoVim NestJS NetBSD NextJS NixOS NodeJS NoSQL NumPy NuxtJS OAuth OAuth2 OpenAI OpenAPI OpenBSD
    OpenGL OpenID OpenSearch OpenShift OpenSSH OpenSSL OpenStack OpenTelemetry PaaS PagerDuty PascalCase PayPal
    PhpStorm PlantUML PostCSS PostgreSQL PostScript PowerShell PyCharm PyPI PySpark PyTest PyTorch RabbitMQ ReactJS
    ReactNative ReadMe ReadTheDocs reStructuredText RocksDB RxJS SaaS SciPy snakeCase SonarQube SpringBoot SvelteKit
    SwiftUI TailwindCSS TeamCity TensorFlow TimescaleDB ToDo ToDos tvOS TypeScript UpperCamelCase VirtualBox visionOS
    VsCode VueJS watchOS WebAssembly WebAuthn WebGL WebRTC WebSocket WebSockets WebStorm WhatsApp WordPress XeLaTeX
    YouTube ZeroMQ
"""
_NAME = (
    rf"(?:{'|'.join(_LIKE_CODE.split())}"
    r"|(?i:d3|ember|express|nest|next|node|nuxt|react|three|vue)\.(?i:js)"  # Node.js
    r"|(?:AES|ECMA|GMT|GPL|IEEE|ISO|LGPL|MPL|PEP|RFC|RSA|SHA|SOC|UTC|UTF|WCAG)-\d+)"  # ISO-8601, PEP-8
    r"(?!\w|\.\w)"
)
_PRODUCTS = re.compile(rf"(?<![\w.@/]){_NAME}(?:/{_NAME})*(?![/(])")
"""One, or several with a slash between; not a part of a path or of an address, nor what is called."""


def without_products(text: str) -> str:
    """`text` without the names of products, languages and standards that look like code, a file or a ticket."""
    return _PRODUCTS.sub("", text)
