// Tests the manifests of examples/deploy/kubernetes against the Kubernetes API schema, the image, the config and the
// metrics.
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { Deployment } from 'kubernetes-models/apps/v1'
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2'
import { Ingress, NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1'
import { ConfigMap, Secret, Service } from 'kubernetes-models/v1'
import { parse, parseAllDocuments } from 'yaml'
import { defineTool } from '../../core/index.ts'
import { modern, type RpcMessage } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { readDockerfile } from './support/dockerfile.ts'
import { readExample } from './support/processes.ts'

const ROOT = join(import.meta.dirname, '../..')
const FOLDER = join(ROOT, 'examples/deploy/kubernetes')
/** Parts of other programs' settings, not objects of the API. */
const NO_MANIFESTS = ['prometheus.yaml', 'prometheus-adapter.yaml']

/** A manifest has any shape, as an answer has. */
type Manifest = RpcMessage

const KINDS = {
  ConfigMap: [ConfigMap, 'v1'],
  Secret: [Secret, 'v1'],
  Service: [Service, 'v1'],
  Deployment: [Deployment, 'apps/v1'],
  Ingress: [Ingress, 'networking.k8s.io/v1'],
  NetworkPolicy: [NetworkPolicy, 'networking.k8s.io/v1'],
  PodDisruptionBudget: [PodDisruptionBudget, 'policy/v1'],
  HorizontalPodAutoscaler: [HorizontalPodAutoscaler, 'autoscaling/v2'],
} as const

const files = readdirSync(FOLDER).filter(name => name.endsWith('.yaml') && !NO_MANIFESTS.includes(name))
const read = (file: string) => readExample(`deploy/kubernetes/${file}`)
const manifestsIn = (file: string): Manifest[] =>
  parseAllDocuments(read(file)).map(document => {
    if (document.errors.length > 0) throw document.errors[0]
    return document.toJS()
  })
const manifests = files.flatMap(manifestsIn)
const one = (kind: keyof typeof KINDS): Manifest => manifests.find(manifest => manifest.kind === kind)

const kindOf = ({ kind, apiVersion }: Manifest) => {
  const [, version] = KINDS[kind as keyof typeof KINDS] ?? []
  if (version !== apiVersion) throw new Error(`this test does not know ${kind} of ${apiVersion}`)
  return kind as keyof typeof KINDS
}

/** Throws where a value is missing, or not of its type: the schema of the API's own description. */
function checkValues(manifest: Manifest): void {
  const [Model] = KINDS[kindOf(manifest)]
  new Model(manifest).validate()
}

/** Returns unknown keys as compiler errors, because the schema allows them and API servers ignore them. */
async function checkKeys(checked: readonly Manifest[]): Promise<string> {
  mkdirSync(join(ROOT, 'node_modules/.cache'), { recursive: true })
  const folder = mkdtempSync(join(ROOT, 'node_modules/.cache/mcp-host-manifests-'))
  try {
    const lines = checked.map((manifest, at) => {
      const kind = kindOf(manifest)
      const type = `import('kubernetes-models/${KINDS[kind][1]}').I${kind}`
      return `export const m${at}: ${type} = ${JSON.stringify(manifest)}`
    })
    writeFileSync(join(folder, 'manifests.ts'), lines.join('\n'))
    const compilerOptions = { strict: true, module: 'nodenext', skipLibCheck: true, noEmit: true, types: [] }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['manifests.ts'] }))
    const compiler = join(ROOT, 'node_modules/.bin/tsc')
    const { stdout } = await promisify(execFile)(compiler, ['-p', folder, '--pretty', 'false']).catch(error => error)
    return stdout
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const pod = (): Manifest => one('Deployment').spec.template
const container = (): Manifest => pod().spec.containers[0]
const portsOf = () =>
  new Map<string, number>(container().ports.map((port: Manifest) => [port.name, port.containerPort]))

const SERVED = {
  toolsets: { main: [defineTool({ name: 'one', input: { type: 'object' }, handler: () => 'one' })] },
  routes: { '/mcp': { toolsets: 'main' } },
}

after(stopHosts)

describe('examples/deploy/kubernetes: schema validation', () => {
  it('every kind has only keys of the API', async () => {
    expect(manifests.map(kindOf)).to.have.members(Object.keys(KINDS))
    expect(await checkKeys(manifests)).to.equal('')
  })

  it('reports an unknown key at any depth', async () => {
    const wrong = structuredClone(one('Deployment'))
    wrong.spec.template.spec.containers[0].readinesProbe = { httpGet: { path: '/', port: 1 } }
    wrong.spec.template.spec.securityContext.runAsNonRot = true
    const said = await checkKeys([wrong])
    expect(said).to.match(/"readinesProbe"/)
    expect(said).to.match(/"runAsNonRot"/)
    const policy = structuredClone(one('NetworkPolicy'))
    policy.spec.ingress[0].form = []
    expect(await checkKeys([policy])).to.match(/"form"' does not exist/)
  })

  for (const manifest of manifests) {
    it(`has valid values: ${manifest.kind}`, () => checkValues(manifest))
  }

  it('reports an invalid value and a missing one', () => {
    const wrong = structuredClone(one('Deployment'))
    wrong.spec.template.spec.containers[0].ports[0].containerPort = 'http'
    expect(() => checkValues(wrong)).to.throw(/containerPort/)
    const missing = structuredClone(one('HorizontalPodAutoscaler'))
    delete missing.spec.maxReplicas
    expect(() => checkValues(missing)).to.throw(/maxReplicas/)
  })
})

describe('examples/deploy/kubernetes: consistency', () => {
  it('selectors match the pods of the deployment', () => {
    const { labels } = pod().metadata
    const selectors = [
      one('Deployment').spec.selector.matchLabels,
      one('Service').spec.selector,
      one('PodDisruptionBudget').spec.selector.matchLabels,
      one('NetworkPolicy').spec.podSelector.matchLabels,
      ...pod().spec.topologySpreadConstraints.map((spread: Manifest) => spread.labelSelector.matchLabels),
    ]
    for (const selector of selectors) expect(labels).to.include(selector)
    const { scaleTargetRef, minReplicas, maxReplicas } = one('HorizontalPodAutoscaler').spec
    expect(scaleTargetRef).to.deep.equal({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      name: one('Deployment').metadata.name,
    })
    expect([minReplicas > 1, maxReplicas > minReplicas, one('Deployment').spec.replicas]).to.deep.equal([
      true,
      true,
      undefined,
    ])
  })

  it('the ingress leads to the port of the image', () => {
    const [rule] = one('Ingress').spec.rules
    const [{ backend }] = rule.http.paths
    const service = one('Service')
    const port = service.spec.ports.find(({ name }: Manifest) => name === backend.service.port.name)
    expect(backend.service.name).to.equal(service.metadata.name)
    const image = readDockerfile(readExample('deploy/docker/Dockerfile')).at(-1)
    expect(portsOf().get(port.targetPort)).to.equal(Number(image?.env['PORT']))
    expect(readExample('deploy/docker/Dockerfile')).to.match(
      new RegExp(`^EXPOSE ${[...portsOf().values()].join(' ')}$`, 'm'),
    )
    expect([one('Ingress').spec.tls[0].hosts, `https://${rule.host}`]).to.deep.equal([
      [rule.host],
      one('ConfigMap').data.PUBLIC_URL,
    ])
    const open = one('NetworkPolicy').spec.ingress.flatMap(({ ports }: Manifest) =>
      ports.map((each: Manifest) => each.port),
    )
    expect(open).to.have.members([...portsOf().keys()])
  })

  it('environment variables match the config and refer to existing keys', () => {
    const config = readExample('deploy/mcp.config.ts')
    const given = { configMapKeyRef: one('ConfigMap'), secretKeyRef: one('Secret') }
    for (const { name, valueFrom } of container().env) {
      const [[kind, ref]] = Object.entries(valueFrom) as [[keyof typeof given, { name: string; key: string }]]
      expect(given[kind].metadata.name, name).to.equal(ref.name)
      expect(Object.keys(given[kind].data ?? given[kind].stringData), name).to.include(ref.key)
      expect(config).to.include(`'${name}'`)
    }
  })

  it('probes use the health paths, and termination waits for the drain', async () => {
    const { startupProbe, livenessProbe, readinessProbe, lifecycle } = container()
    const { url } = await startHost({ ...SERVED, plugins: { health: {} } })
    for (const { httpGet, timeoutSeconds } of [startupProbe, livenessProbe, readinessProbe]) {
      expect((await fetch(new URL(httpGet.path, url))).status).to.equal(200)
      expect(portsOf().has(httpGet.port)).to.equal(true)
      // A condition of readiness has two seconds to answer.
      expect(timeoutSeconds).to.be.above(2)
    }
    expect([livenessProbe.httpGet.path, readinessProbe.httpGet.path]).to.deep.equal(['/livez', '/readyz'])
    const [program, seconds] = lifecycle.preStop.exec.command
    expect(program).to.equal('sleep')
    expect(pod().spec.terminationGracePeriodSeconds).to.be.at.least(Number(seconds) + 30)
  })

  it('pods run without privileges', () => {
    const { securityContext, automountServiceAccountToken, enableServiceLinks } = pod().spec
    const image = readDockerfile(readExample('deploy/docker/Dockerfile')).at(-1)
    expect(`${securityContext.runAsUser}:${securityContext.runAsGroup}`).to.equal(image?.user)
    expect(securityContext).to.deep.include({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
    expect([automountServiceAccountToken, enableServiceLinks]).to.deep.equal([false, false])
    expect(container().securityContext).to.deep.equal({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
  })
})

describe('metric for autoscaling in examples/deploy/kubernetes', () => {
  it('is derived by the adapter from a metric of the host', async () => {
    const token = 'a token of the operator'.replaceAll(' ', '-')
    const { url } = await startHost({
      ...SERVED,
      plugins: { 'transport-streamable': {}, metrics: { path: '/metrics', token } },
    })
    await modern(`${url}/mcp`, 'tools/list')
    const page = await (await fetch(`${url}/metrics`, { headers: { Authorization: `Bearer ${token}` } })).text()
    const [rule] = parse(read('prometheus-adapter.yaml')).rules.custom
    const [, series = ''] = /^(\w+)\{/.exec(rule.seriesQuery) ?? []
    expect(page).to.match(new RegExp(`^${series}\\{`, 'm'))
    expect(new RegExp(rule.name.matches).test(series)).to.equal(true)
    const names = one('HorizontalPodAutoscaler').spec.metrics.map((metric: Manifest) => metric.pods?.metric.name)
    expect(names).to.include(rule.name.as)
  })

  it('has the labels of the adapter and the job name of the alerts', () => {
    const [job] = parse(read('prometheus.yaml')).scrape_configs
    const [rule] = parse(read('prometheus-adapter.yaml')).rules.custom
    const labels = job.relabel_configs.map((config: Manifest) => config.target_label).filter(Boolean)
    expect(labels).to.include.members(Object.keys(rule.resources.overrides))
    expect(job.job_name).to.equal('mcp-host')
    expect(Object.keys(one('Secret').stringData)).to.include(job.authorization.credentials_file.split('/').at(-1))
    expect([...portsOf().keys()]).to.include(job.relabel_configs[1].regex)
  })
})
