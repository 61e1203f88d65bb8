import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ScaledObject } from '@kubernetes-models/keda/keda.sh/v1alpha1'
import { findProgram, renderChart, renderText } from '@tollgate/testing'
import { Ajv } from 'ajv'
import { Deployment } from 'kubernetes-models/apps/v1'
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2'
import { Ingress, NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1'
import { ConfigMap, Service, ServiceAccount } from 'kubernetes-models/v1'
import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments, stringify } from 'yaml'
import { configSchema } from '../../packages/config/src/index.ts'

const folder = join(import.meta.dirname, '../../helm/tollgate')
const serviceNames = ['billing', 'fetch-worker', 'gateway', 'sandbox-broker', 'search-broker']

type Kind = new (data: never) => { validate(): void }
const kinds: Record<string, Kind> = {
  ConfigMap,
  Deployment,
  HorizontalPodAutoscaler,
  Ingress,
  NetworkPolicy,
  PodDisruptionBudget,
  ScaledObject,
  Service,
  ServiceAccount,
} as unknown as Record<string, Kind>

// what a rendered object is read as here; the models check its shape
interface Rendered {
  kind: string
  metadata: { name: string }
  spec: never
  data: Record<string, string>
}
const render = (values: object = {}) => renderChart(folder, { values }) as unknown as Rendered[]
const named = (objects: Rendered[], kind: string, end: string) => {
  const found = objects.find((object) => object.kind === kind && object.metadata.name.endsWith(end))
  if (!found) throw new Error(`no ${kind} …${end}`)
  return found
}
interface PodSpec {
  template: {
    metadata: { annotations: Record<string, string> }
    spec: {
      automountServiceAccountToken: boolean
      terminationGracePeriodSeconds: number
      securityContext: object
      runtimeClassName?: string
      containers: [
        {
          args: string[]
          env: {
            name: string
            value?: string
            valueFrom?: { secretKeyRef: { name: string; key: string; optional?: boolean } }
          }[]
          securityContext: object
          readinessProbe: { httpGet: { path: string } }
          livenessProbe: { httpGet: { path: string } }
        },
      ]
    }
  }
  replicas?: number
}
const pod = (objects: Rendered[], name: string) => named(objects, 'Deployment', `-${name}`).spec as PodSpec

const valueSets: Record<string, object> = {
  defaults: {},
  keda: { autoscaling: { fetchWorker: 'keda' }, config: { nats_prefix: 'prod' } },
  'no scaling': { autoscaling: { fetchWorker: 'none' } },
  sandbox: { sandbox: { enabled: true, runtimeClassName: 'gvisor' } },
  'a sandbox with namespaces': { sandbox: { enabled: true, minIsolation: 'ns', namespaces: { enabled: true } } },
  render: { render: { enabled: true, runtimeClassName: 'gvisor' } },
  'no policies': { networkPolicy: { enabled: false } },
  ingress: { ingress: { enabled: true, host: 'tools.example.com', className: 'nginx', tlsSecret: 'tls' } },
  'everything else': {
    otlpEndpoint: 'http://jaeger:4318',
    imagePullSecrets: [{ name: 'pull' }],
    image: { tag: 'v9' },
    podAnnotations: null,
    nodeSelector: { disk: 'ssd' },
    tolerations: [{ key: 'a', operator: 'Exists' }],
    secretEnv: { gateway: { OPENAI_API_KEY: 'openai' } },
    networkPolicy: {
      gatewayFrom: [{ namespaceSelector: { matchLabels: { name: 'ingress' } } }],
      extraEgress: { 'search-broker': [{ ports: [{ port: 8080, protocol: 'TCP' }], to: [{ podSelector: {} }] }] },
    },
  },
}

describe.each(Object.entries(valueSets))('the chart with %s', (_name, values) => {
  test('renders objects that Kubernetes knows', () => {
    const objects = render(values)
    expect(objects.length).toBeGreaterThan(10)
    for (const object of objects) {
      const Model = kinds[object.kind]
      if (!Model) throw new Error(`no model of ${object.kind}`)
      expect(() => new Model(object as never).validate(), `${object.kind} ${object.metadata.name}`).not.toThrow()
    }
    const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    expect(new Set(names).size).toBe(names.length)
  })

  test('takes values that its schema accepts', () => {
    const schema: unknown = JSON.parse(readFileSync(join(folder, 'values.schema.json'), 'utf8'))
    const validate = new Ajv({ allErrors: true }).compile(schema as object)
    expect(validate(merged(values)), JSON.stringify(validate.errors)).toBe(true)
  })

  test.skipIf(!findProgram('helm'))('equals what helm renders', () => {
    const scratch = mkdtempSync(join(tmpdir(), 'chart-'))
    try {
      writeFileSync(join(scratch, 'values.yaml'), stringify(values))
      const text = execFileSync('helm', ['template', 'rel', folder, '-f', join(scratch, 'values.yaml')], {
        encoding: 'utf8',
      })
      const theirs = parseAllDocuments(text)
        .map((document) => document.toJS())
        .filter(Boolean)
      const key = (object: unknown) => `${(object as Rendered).kind} ${(object as Rendered).metadata.name}`
      const byKey = (objects: unknown[]) => objects.toSorted((a, b) => (key(a) < key(b) ? -1 : 1))
      expect(byKey(render(values))).toEqual(byKey(theirs))
    } finally {
      rmSync(scratch, { recursive: true })
    }
  })
})

/** Values as helm would merge them, read back from the ConfigMap-free path: defaults under ours. */
function merged(values: object): unknown {
  const base = parse(readFileSync(join(folder, 'values.yaml'), 'utf8')) as Record<string, unknown>
  const lay = (under: unknown, over: unknown): unknown => {
    if (typeof under !== 'object' || under === null || typeof over !== 'object' || over === null) return over
    if (Array.isArray(over)) return over
    const result: Record<string, unknown> = { ...under }
    for (const [name, value] of Object.entries(over)) {
      if (value === null) delete result[name]
      else result[name] = lay(result[name], value)
    }
    return result
  }
  return lay(base, values)
}

describe('the values schema refuses', () => {
  const validate = new Ajv({ allErrors: true }).compile(
    JSON.parse(readFileSync(join(folder, 'values.schema.json'), 'utf8')) as object,
  )
  test.each([
    ['a misspelt section', { autoscalling: {} }],
    ['an unknown scaler', { autoscaling: { fetchWorker: 'magic' } }],
    ['a service without resources', { services: { extra: { replicas: 1 } } }],
    ['a secret key with a space', { env: { OTARI_DATABASE_URL: 'a b' } }],
    ['an isolation that is none', { sandbox: { minIsolation: 'process' } }],
    ['a seccomp profile by an absolute path', { sandbox: { namespaces: { seccompProfile: '/etc/x.json' } } }],
    ['a replica count in words', { services: { gateway: { replicas: 'two' } } }],
  ])('%s', (_name, values) => {
    expect(validate(merged(values))).toBe(false)
  })
})

describe('each service', () => {
  const objects = render({ sandbox: { enabled: true } })

  test('is one Deployment of the same image, named by its argument', () => {
    const deployments = objects.filter(({ kind }) => kind === 'Deployment')
    expect(deployments.map(({ spec }) => (spec as PodSpec).template.spec.containers[0].args[0]).toSorted()).toEqual(
      [...serviceNames, 'sandbox'].toSorted(),
    )
  })

  test.each([...serviceNames, 'sandbox'])('%s runs without rights and without a token', (name) => {
    const { spec } = pod(objects, name).template
    expect(spec.automountServiceAccountToken).toBe(false)
    expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
    expect(spec.containers[0].securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
  })

  test.each(serviceNames)('BR-163 %s is given longer than its drain and the wait before it', (name) => {
    const { terminationGracePeriodSeconds: grace, containers } = pod(objects, name).template.spec
    const env = (variable: string) => Number(containers[0].env.find((entry) => entry.name === variable)?.value)
    expect(env('OTARI_DRAIN_SEC')).toBeGreaterThan(0)
    expect(grace).toBe(env('OTARI_DRAIN_SEC') + env('OTARI_DRAIN_DELAY_SEC') + 10)
    expect(containers[0].readinessProbe.httpGet.path).toBe('/readyz')
    expect(containers[0].livenessProbe.httpGet.path).toBe('/livez')
  })

  test('takes secrets by reference only', () => {
    const canaries = renderText(folder, { values: { secretEnv: { gateway: { OPENAI_API_KEY: 'openai' } } } })
    expect(canaries).toContain('secretKeyRef')
    for (const name of serviceNames)
      for (const { name: variable, value } of pod(objects, name).template.spec.containers[0].env)
        if (/KEY|DATABASE|NATS_URL|TOKEN/.test(variable)) expect(value, `${name} ${variable}`).toBeUndefined()
  })

  test('the settings in the ConfigMap are settings that exist, and a change restarts the pods', () => {
    const values = { config: { web_search_default_tool: 'none', require_pricing: false } }
    const changed = render(values)
    const config = parse(named(changed, 'ConfigMap', '').data['config.yml'] ?? '') as Record<string, unknown>
    expect(configSchema.safeParse(config).success).toBe(true)
    const sum = (rendered: Rendered[]) => pod(rendered, 'gateway').template.metadata.annotations['checksum/config']
    expect(sum(changed)).not.toBe(sum(render()))
  })
})

describe('fetch-worker', () => {
  test('is scaled by the calls that wait in its streams', () => {
    const objects = render({ autoscaling: { fetchWorker: 'keda' }, config: { nats_prefix: 'prod' } })
    const { spec } = named(objects, 'ScaledObject', '-fetch-worker') as unknown as {
      spec: { scaleTargetRef: { name: string }; triggers: { type: string; metadata: Record<string, string> }[] }
    }
    expect(spec.scaleTargetRef.name).toBe(named(objects, 'Deployment', '-fetch-worker').metadata.name)
    expect(spec.triggers).toMatchObject(
      ['PROD_V1_FETCH_PAGE', 'PROD_V1_FETCH_IMAGE'].map((stream) => ({
        type: 'nats-jetstream',
        metadata: { stream, consumer: 'fetch-worker', lagThreshold: '8' },
      })),
    )
    expect(pod(objects, 'fetch-worker').replicas).toBeUndefined()
    expect(objects.some(({ kind }) => kind === 'HorizontalPodAutoscaler')).toBe(false)
  })

  test('reaches the internet and NATS, never the cluster or a private network', () => {
    const { spec } = named(render(), 'NetworkPolicy', '-fetch-worker') as unknown as {
      spec: { egress: { ports?: { port: number }[]; to?: { ipBlock?: { cidr: string; except?: string[] } }[] }[] }
    }
    const open = spec.egress.filter(({ ports }) => ports === undefined)
    expect(open).toHaveLength(1)
    expect(open[0]?.to?.[0]?.ipBlock?.except).toEqual(
      expect.arrayContaining(['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16', '127.0.0.0/8']),
    )
    expect(spec.egress.flatMap(({ ports }) => ports ?? []).map(({ port }) => port)).not.toContain(5432)
  })
})

test('the sandbox lets only its broker in and nothing out', () => {
  const { spec } = named(render({ sandbox: { enabled: true } }), 'NetworkPolicy', '-sandbox') as unknown as {
    spec: { policyTypes: string[]; egress?: unknown[]; ingress: { ports: { port: number }[]; from?: unknown }[] }
  }
  expect(spec.policyTypes).toEqual(['Ingress', 'Egress'])
  expect(spec.egress).toBeUndefined()
  expect(spec.ingress.find(({ ports }) => ports[0]?.port === 8080)?.from).toBeDefined()
})

test.each([true, false])('who serves code and who offers it know where the bundled sandbox is: %s', (enabled) => {
  const rendered = render({ sandbox: { enabled } })
  const told = (name: string) =>
    pod(rendered, name).template.spec.containers[0].env.some(({ name: variable }) => variable === 'OTARI_SANDBOX_URL')
  expect(serviceNames.filter(told)).toEqual(enabled ? ['gateway', 'sandbox-broker'] : [])
})

describe('the sandbox pod', () => {
  interface SandboxPod {
    hostUsers?: boolean
    securityContext: object
    volumes: object[]
  }
  const sandboxPod = (values: object) => {
    const { spec } = pod(render({ sandbox: { enabled: true, ...values } }), 'sandbox').template
    return { spec: spec as unknown as SandboxPod, container: spec.containers[0] }
  }
  const strict = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } }

  test('is a restricted one, whose sessions are kept apart by Landlock at least', () => {
    const { spec, container } = sandboxPod({})
    expect(spec.hostUsers).toBeUndefined()
    expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
    expect(container.securityContext).toEqual(strict)
    expect(container.env).toContainEqual({ name: 'OTARI_SANDBOX_MIN_ISOLATION', value: 'landlock' })
    expect(spec.volumes).toEqual([{ name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: '1Gi' } }])
  })

  test('gives up what namespaces need when they are asked for, and nothing else', () => {
    const { spec, container } = sandboxPod({ minIsolation: 'ns', namespaces: { enabled: true }, tmpSize: '64Mi' })
    expect(spec.hostUsers).toBe(false)
    expect(spec.securityContext).toEqual({
      runAsNonRoot: true,
      runAsUser: 1000,
      runAsGroup: 1000,
      seccompProfile: { type: 'Localhost', localhostProfile: 'profiles/tollgate-sandbox.json' },
      appArmorProfile: { type: 'Unconfined' },
    })
    expect(container.securityContext).toEqual({ ...strict, procMount: 'Unmasked' })
    expect(spec.volumes).toEqual([{ name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: '64Mi' } }])
  })
})

describe('the seccomp profile of the sandbox', () => {
  const deploy = join(import.meta.dirname, '../../deploy')
  const profile = JSON.parse(readFileSync(join(deploy, 'sandbox-seccomp.json'), 'utf8')) as {
    defaultAction: string
    architectures: string[]
    syscalls: { names: string[]; action: string; errnoRet?: number; args?: { index: number; value: number }[] }[]
  }
  const allowed = profile.syscalls
    .filter(({ action, args }) => action === 'SCMP_ACT_ALLOW' && !args)
    .flatMap(({ names }) => names)

  test('refuses what it does not name, and names each call once', () => {
    expect(profile.defaultAction).toBe('SCMP_ACT_ERRNO')
    expect(new Set(allowed).size).toBe(allowed.length)
    expect(allowed.length).toBeGreaterThan(200)
  })

  test('allows what level ns needs', () => {
    const needed = ['unshare', 'setns', 'mount', 'umount2', 'pivot_root', 'mount_setattr', 'clone', 'sethostname']
    const own = ['seccomp', 'prctl', 'capset', 'openat2', 'pidfd_open', 'landlock_restrict_self']
    expect(allowed).toEqual(expect.arrayContaining([...needed, ...own]))
  })

  test.each(
    'bpf perf_event_open userfaultfd io_uring_setup keyctl add_key ptrace process_vm_readv kexec_load init_module reboot open_by_handle_at pidfd_getfd fsopen move_mount open_tree swapon acct settimeofday memfd_secret'.split(
      ' ',
    ),
  )('does not allow %s', (name) => {
    expect(allowed).not.toContain(name)
  })

  test('lets four families of sockets be made, and clone3 be missed', () => {
    const sockets = profile.syscalls.filter(({ names }) => names.includes('socket'))
    expect(sockets.map(({ args }) => args?.[0]?.value)).toEqual([1, 2, 10, 16])
    expect(profile.syscalls.find(({ names }) => names.includes('clone3'))).toMatchObject({ errnoRet: 38 })
  })

  test('is what the compose files name, in one that is laid over the other', () => {
    const over = parse(readFileSync(join(deploy, 'compose.namespaces.yml'), 'utf8')) as {
      services: { sandbox: { security_opt: string[] } }
    }
    expect(over.services.sandbox.security_opt).toContain('seccomp=sandbox-seccomp.json')
    const base = parse(readFileSync(join(deploy, 'compose.yml'), 'utf8'), { merge: true }) as {
      services: Record<string, { read_only?: boolean; cap_drop?: string[]; security_opt?: string[]; tmpfs?: string[] }>
      networks: { sandbox: { internal: boolean } }
    }
    expect(base.services.sandbox).toMatchObject({ read_only: true, cap_drop: ['ALL'], networks: ['sandbox'] })
    expect(base.services.sandbox?.security_opt).toEqual(['no-new-privileges:true'])
    expect(base.services.sandbox?.tmpfs).toEqual(['/tmp:size=1g,mode=1777,nosuid,nodev'])
    expect(base.networks.sandbox.internal).toBe(true)
  })
})

test('a render-worker is there when it is switched on, with NATS alone of the secrets and the internet alone outside', () => {
  expect(render().some(({ metadata }) => metadata.name.endsWith('-render-worker'))).toBe(false)
  const objects = render({ render: { enabled: true } })
  const { spec } = pod(objects, 'render-worker').template
  const [container] = spec.containers
  expect(container.args).toEqual(['render-worker'])
  expect(container.env.filter(({ valueFrom }) => valueFrom).map(({ name }) => name)).toEqual(['OTARI_NATS_URL'])
  expect(container.securityContext).toMatchObject({ readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } })
  const policy = named(objects, 'NetworkPolicy', '-render-worker') as unknown as {
    spec: { egress: { ports?: { port: number }[]; to?: { ipBlock?: { except?: string[] } }[] }[] }
  }
  const open = policy.spec.egress.filter(({ ports }) => ports === undefined)
  expect(open).toHaveLength(1)
  expect(open[0]?.to?.[0]?.ipBlock?.except).toEqual(
    expect.arrayContaining(['10.0.0.0/8', '169.254.0.0/16', '127.0.0.0/8']),
  )
  const told = (rendered: Rendered[], name: string) =>
    pod(rendered, name).template.spec.containers[0].env.find((entry) => entry.name === 'OTARI_MCP_BROWSER_ENABLED')
      ?.value
  for (const name of ['gateway', 'fetch-worker'])
    expect([told(objects, name), told(render(), name)]).toEqual(['true', undefined])
})

test('an ingress without a host is refused in words', () => {
  expect(() => render({ ingress: { enabled: true } })).toThrow('ingress.host')
})

test('BR-166 the ingress does not hold event streams back', () => {
  const { metadata } = named(render({ ingress: { enabled: true, host: 'a.example' } }), 'Ingress', '') as unknown as {
    metadata: { annotations: Record<string, string> }
  }
  expect(metadata.annotations['nginx.ingress.kubernetes.io/proxy-buffering']).toBe('off')
})
