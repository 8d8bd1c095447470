// Data of the API for a component: loaded at once, then again at an interval while the tab is visible.
import { useEffect, useState } from 'preact/hooks'
import { isVisible } from './clock.ts'
import { reloads } from './live.ts'
import { withNode } from './node.ts'
import { errorText, post, request } from './request.ts'

export interface Resource<T> {
  readonly data: T | undefined
  /** The error of the last request. Earlier data stays. */
  readonly error: string | undefined
  /** Time of the last successful request. */
  readonly at: number | undefined
  readonly reload: () => void
}

interface Settings {
  /** Seconds between two requests. Default: loaded once, and again after a reload of the config. */
  readonly every?: number
  /** Sends a POST with this body, which is JSON. */
  readonly body?: string | undefined
}

interface State<T> {
  readonly path?: string | undefined
  readonly data?: T
  readonly error?: string
  readonly at?: number
}

/** `path` undefined: nothing to load. Data of another path is never shown. */
export function useResource<T>(given: string | undefined, { every, body }: Settings = {}): Resource<T> {
  const url = given === undefined ? undefined : withNode(given)
  const path = url === undefined ? undefined : `${url} ${body ?? ''}`
  const [state, setState] = useState<State<T>>({})
  const [attempt, setAttempt] = useState(0)
  const visible = isVisible.value
  const reload = reloads.value
  useEffect(() => {
    if (url === undefined || !visible) return
    let isOver = false
    let timer = 0
    async function load(from: string) {
      try {
        const data = body === undefined ? await request<T>(from) : await post<T>(from, JSON.parse(body))
        if (!isOver) setState({ path, data, at: Date.now() })
      } catch (error) {
        if (!isOver) setState(old => ({ ...(old.path === path ? old : {}), path, error: errorText(error) }))
      }
      if (!isOver && every !== undefined) timer = window.setTimeout(load, every * 1_000, from)
    }
    void load(url)
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [path, every, visible, attempt, reload])
  const own = state.path === path ? state : {}
  return { data: own.data, error: own.error, at: own.at, reload: () => setAttempt(attempt + 1) }
}
