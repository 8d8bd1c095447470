// Sets up the tasks extension, with one worker for each store.

import { HostError } from '../../core/index.ts'
import type { InternalHost } from '../../core/internal.ts'
import { type Call, type Extension, type McpRoute, StartError } from '../../core/plugin.ts'
import { transportOf } from '../../core/transport.ts'
import type { QueueDepth, TaskEnd, TaskStore } from '../families/task-store/index.ts'
import { Followers } from './followers.ts'
import type { FilledTasksOptions } from './options.ts'
import { createTaskPolicy } from './policy.ts'
import type { TaskSetting } from './task-key.ts'
import { concurrencyOf, settingsOf, TASKS_ID, Tasks, type TasksHost } from './tasks.ts'
import { TaskWorker, type WorkerHost } from './worker.ts'

const STATES = ['queued', 'running'] as const

/** `depths`: the queue depth of each store that this process uses, at the last check. */
function addMetrics({ metrics }: Pick<InternalHost, 'metrics'>, depths: () => readonly QueueDepth[]) {
  metrics.gauge(
    {
      name: 'mcp_host_tasks',
      help: 'Queued and running tasks. Nodes that share a store report the same value.',
      labels: ['state'],
    },
    () => STATES.map(state => [depths().reduce((sum, depth) => sum + depth[state], 0), { state }] as const),
  )
  metrics.gauge(
    {
      name: 'mcp_host_task_queue_age_seconds',
      help: 'Longest time that a queued task has waited. Nodes that share a store report the same value.',
    },
    () => Math.max(0, ...depths().map(({ waited }) => waited / 1_000)),
  )
  const ends = metrics.counter({
    name: 'mcp_host_tasks_ended_total',
    help: 'Tasks that this node ended, by final state.',
    labels: ['state'],
  })
  const seconds = metrics.histogram({
    name: 'mcp_host_task_seconds',
    help: 'Duration of a task, from claim to end.',
  })
  return (state: TaskEnd['state'], milliseconds: number) => {
    ends(1, { state })
    seconds(milliseconds / 1_000)
  }
}

interface Service {
  readonly tasks: Tasks
  readonly followers: Followers
  readonly worker: TaskWorker
}

function checkStore({ config: { at, processes, purpose }, report, log }: InternalHost, store: TaskStore, role: string) {
  if (role !== 'both' && store.shared !== true) {
    const where = store.shared ? 'in a file of this host' : 'in this process'
    const what = `tasks are kept ${where} only, so a ${role} cannot share tasks with other nodes`
    const fix = 'add cluster-redis or task-store-redis, or start without this role'
    report(new StartError('MH2501', `${what}; ${fix}`, { at: [...at, 'role'] }))
    return
  }
  if (store.shared) return
  const fix = 'add cluster-redis, task-store-redis or store-sqlite (Node 22.13 or later)'
  if (processes > 1) {
    report(new StartError('MH2502', `tasks are kept in one process; ${fix}, or start without --workers`, { at }))
  } else if (purpose === 'serve') {
    log.warn({ code: 'MH2502', fix }, 'tasks are kept in memory: a restart loses them')
  }
}

const extensionOf = (serviceOf: (call: Call) => Service): Extension => ({
  methods: {
    'tasks/get': call => serviceOf(call).tasks.get(call),
    'tasks/update': call => serviceOf(call).tasks.update(call),
    'tasks/cancel': call => serviceOf(call).tasks.cancel(call),
    'io.mcp-host/tasks/list': call => serviceOf(call).tasks.list(call),
  },
  nameHeaders: { 'tasks/get': 'taskId', 'tasks/update': 'taskId', 'tasks/cancel': 'taskId' },
  results: { 'tools/call': ['task'] },
  listenFilters: { taskIds: (wanted, call) => serviceOf(call).followers.filter(wanted, call) },
})

interface Shared extends Pick<TasksHost, 'settings' | 'extension'>, Pick<WorkerHost, 'onEnded'> {
  readonly host: InternalHost
}

function createService(store: TaskStore, routes: readonly McpRoute[], { host, ...shared }: Shared): Service {
  const policy = createTaskPolicy(host.services)
  const queues = () =>
    new Map(
      routes.flatMap(route =>
        [...policy.queuesOn(route)].map(([queue, item]) => {
          policy.remember(queue, item)
          return [queue, concurrencyOf(item.definition)] as const
        }),
      ),
    )
  const worker = new TaskWorker({
    ...shared,
    store,
    queues,
    transport: transportOf(host),
    routes: new Map(routes.map(route => [route.path, route])),
    log: host.log,
    inFlight: host.services.trackRequest,
  })
  const { makeOffer } = host.services
  const tasks = new Tasks({ ...shared, store, policy, makeOffer, queued: (queue, most) => worker.serve(queue, most) })
  return { tasks, followers: new Followers(store, tasks, host), worker }
}

function storesOf({ routes, services }: InternalHost): ReadonlyMap<TaskStore, readonly McpRoute[]> {
  const stores = new Map<TaskStore, McpRoute[]>()
  for (const route of routes) {
    const store = services.slot('taskStore', route)
    stores.set(store, [...(stores.get(store) ?? []), route])
  }
  return stores
}

/** Workers serve no clients; a load balancer tries another node. */
function refuseClients(): never {
  const detail = 'this process only runs tasks (role worker); send requests to a process that accepts calls'
  throw new HostError('unavailable', { detail, headers: { 'Retry-After': '1' } })
}

const BEFORE = 'which is isolated (`isolate`), but its `task.before` cannot be isolated; remove one of them'

export function setUpTasks(host: InternalHost, options: FilledTasksOptions): void {
  const settings = settingsOf(options, host)
  if (options.role === 'worker') host.onRequest(refuseClients)
  const byRoute = new Map<string, Service>()
  const services = new Map<TaskStore, Service>()
  const onEnded = addMetrics(host, () => [...services.values()].flatMap(({ worker }) => worker.depths))
  const serviceOf = (call: Call) => {
    const service = byRoute.get(call.offer.route.path)
    if (!service) throw new HostError('unavailable', { detail: 'the server is starting' })
    return service
  }
  const extension = host.extension(TASKS_ID, extensionOf(serviceOf))
  host.toolKey<TaskSetting>('task', {
    onCall: (call, task, run, tool) => serviceOf(call).tasks.onCall(call, task, run, tool),
    check: (task, _tool, { isIsolated }) =>
      isIsolated && typeof task === 'object' && task.before ? BEFORE : undefined,
    // The lock shows each tool's use of tasks itself.
    digest: () => undefined,
  })
  host.onReady(() => {
    for (const [store, routes] of storesOf(host)) {
      const service = createService(store, routes, { host, settings, extension, onEnded })
      services.set(store, service)
      for (const { path } of routes) byRoute.set(path, service)
      checkStore(host, store, options.role)
    }
  })
  host.onStart(() => {
    for (const [store, { followers, worker }] of services) {
      host.onClose(store.watch(change => followers.handle(change)))
      worker.start()
    }
  })
  host.preClose(() => {
    for (const { worker } of services.values()) worker.drain()
  })
  host.onClose(async () => {
    for (const { worker } of services.values()) await worker.close()
  })
}
