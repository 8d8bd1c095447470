// The website: the same Markdown that the repository and the package have, with a sidebar, a search and a reference.
// `npm run docs` builds it; a link that leads nowhere, and a page that the sidebar lacks, fail the build.
import { cpSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { globSync } from 'tinyglobby'
import { type DefaultTheme, defineConfig } from 'vitepress'
import { anchorOf, COPIED, UNPUBLISHED } from '../published.ts'

const ROOT = join(import.meta.dirname, '../..')

const page = (text: string, link: string) => ({ text, link })

const plugins = readdirSync(join(ROOT, 'docs/plugins'))
  .filter(file => file.endsWith('.md') && file !== 'README.md')
  .map(file => page(file.slice(0, -3), `/docs/plugins/${file.slice(0, -3)}`))

const sidebar: DefaultTheme.SidebarItem[] = [
  {
    text: 'Begin',
    items: [
      page('What it is', '/'),
      page('Serve it: operators', '/docs/tutorials/operator'),
      page('Write tools', '/docs/tutorials/tools'),
      page('Write a plugin', '/docs/tutorials/plugin'),
      page('Call servers', '/docs/tutorials/client'),
      page('Examples', '/examples/README'),
      page('Example: protected', '/examples/protected/README'),
      page('Example: three nodes', '/examples/scaling/README'),
      page('Example: a company’s sign-in', '/examples/bridge/README'),
    ],
  },
  {
    text: 'Serve',
    items: [
      page('The config', '/docs/config'),
      page('The command line', '/docs/cli'),
      page('Protection', '/docs/protection'),
      page('The lock', '/docs/lock'),
      page('Existing MCP servers', '/docs/upstream'),
      page('Connect a client', '/docs/connect'),
      page('Operating', '/docs/operating'),
      page('Logs', '/docs/logs'),
      page('Limits', '/docs/limits'),
      page('Deploying', '/docs/deploy'),
      page('Scaling', '/docs/scaling'),
      page('Running Redis', '/docs/redis'),
      page('Embedding', '/docs/embedding'),
      page('Proxy', '/docs/proxy'),
      page('Errors', '/docs/errors'),
      page('Codes', '/docs/codes'),
      page('Codes of plugins', '/docs/codes-plugins'),
      page('Troubleshooting', '/docs/troubleshooting'),
    ],
  },
  {
    text: 'Deployment files',
    collapsed: true,
    items: [
      page('All of them', '/examples/deploy/README'),
      page('Docker', '/examples/deploy/docker/README'),
      page('Kubernetes', '/examples/deploy/kubernetes/README'),
      page('systemd', '/examples/deploy/systemd/README'),
      page('nginx', '/examples/deploy/nginx/README'),
      page('Caddy', '/examples/deploy/caddy/README'),
    ],
  },
  {
    text: 'Your identity provider',
    collapsed: true,
    items: [
      page('Which provider?', '/docs/bridge/README'),
      page('Microsoft Entra ID', '/docs/bridge/entra'),
      page('Okta', '/docs/bridge/okta'),
      page('Google', '/docs/bridge/google'),
      page('GitHub', '/docs/bridge/github'),
      page('Auth0', '/docs/bridge/auth0'),
      page('Keycloak', '/docs/bridge/keycloak'),
      page('Any other', '/docs/bridge/oidc'),
      page('Without a browser', '/docs/enterprise-authorization'),
      page('Threat model', '/docs/bridge/threat-model'),
    ],
  },
  {
    text: 'Write',
    items: [
      page('Tools, resources, prompts', '/docs/tools'),
      page('Testing', '/docs/testing'),
      page('Plugins', '/docs/plugins'),
      page('The OAuth client', '/docs/client'),
      page('From the official SDK', '/docs/migrate-from-sdk'),
      page('From FastMCP', '/docs/migrate-from-fastmcp'),
    ],
  },
  {
    text: 'Plugins',
    collapsed: true,
    items: [
      page('All of them', '/docs/plugins/README'),
      ...plugins,
      page('auth-bridge: internals', '/docs/internals/auth-bridge'),
      page('audit: internals', '/docs/internals/audit'),
      page('DPoP: internals', '/docs/internals/dpop'),
      page('Redis keys', '/docs/internals/redis-keys'),
    ],
  },
  {
    text: 'Reference',
    collapsed: true,
    items: ['', '/plugin', '/host', '/testing', '/client', '/client/node'].map(entry =>
      page(`mcp-host${entry}`, `/reference/mcp-host${entry}`),
    ),
  },
  {
    text: 'The project',
    collapsed: true,
    items: [
      page('Architecture', '/docs/architecture'),
      page('Performance', '/docs/performance'),
      page('Performance: internals', '/docs/internals/performance'),
      page('Config: internals', '/docs/internals/config'),
      page('Security tests', '/docs/security-tests'),
      page('Dependencies', '/docs/dependencies'),
      page('Known limitations', '/docs/limitations'),
      page('Security', '/SECURITY'),
      page('Changes', '/CHANGELOG'),
      page('Contributing', '/CONTRIBUTING'),
    ],
  },
]

/** Throws for a page that nobody would find, and for an entry without a page. */
function checkSidebar(pages: readonly string[]): void {
  const linked = sidebar.flatMap(({ items = [] }) => items.map(({ link = '' }) => link))
  const served = new Set(pages.map(path => `/${path.replace(/(?:^|(?<=\/))index\.md$|\.md$/, '')}`))
  const missing = [...served].filter(path => !linked.includes(path) && path !== '/reference/')
  const dead = linked.filter(path => !served.has(path))
  if (missing.length + dead.length === 0) return
  throw new Error(
    `the sidebar lacks ${missing.join(', ') || 'nothing'}; it has no page for ${dead.join(', ') || 'none'}`,
  )
}

/** The pages are outside of this folder, and on the server side what they are compiled to looks for vue beside them. */
const vueFromHere = {
  name: 'vue-from-here',
  enforce: 'pre' as const,
  resolveId(source: string, importer: string | undefined, { ssr }: { ssr?: boolean }) {
    const isOutside = ssr && importer?.endsWith('.md') && /^vue(?:\/|$)/.test(source)
    return isOutside ? this.resolve(source, import.meta.filename, { skipSelf: true }) : undefined
  },
}

export default defineConfig({
  title: 'mcp-host',
  description:
    'An MCP server host: one typed config file, a protected and observable MCP endpoint for every protocol version.',
  srcDir: ROOT,
  srcExclude: UNPUBLISHED,
  outDir: join(import.meta.dirname, '../dist'),
  rewrites: { 'README.md': 'index.md', 'site/reference/:rest*': 'reference/:rest*' },
  cleanUrls: true,
  markdown: { anchor: { slugify: anchorOf } },
  vite: { plugins: [vueFromHere] },
  themeConfig: {
    search: { provider: 'local' },
    sidebar,
    outline: [2, 3],
    docFooter: { prev: 'Before', next: 'Next' },
  },
  buildEnd({ outDir, pages, rewrites }) {
    checkSidebar(pages.map(path => rewrites.map[path] ?? path))
    const copied = globSync(COPIED, { cwd: ROOT, ignore: ['**/node_modules/**'] })
    for (const file of copied) cpSync(join(ROOT, file), join(outDir, file))
  },
})
