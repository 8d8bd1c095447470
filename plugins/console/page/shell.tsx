// The frame of all screens: header with search and connection state, navigation, and the current screen.
import type { ComponentType } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Link, useLocation } from 'wouter-preact'
import { clock } from './data/clock.ts'
import { connection, endReason, lastMessageAt, lastTick } from './data/live.ts'
import { selectedNode } from './data/node.ts'
import { useQuery } from './data/query.ts'
import { logout, me } from './data/session.ts'
import { duration, visibleText } from './data/text.ts'
import { Dot } from './parts/badge.tsx'
import { Toast } from './parts/copy.tsx'
import { Empty } from './parts/states.tsx'
import { Text } from './parts/text.tsx'
import { SCREENS, type Screen } from './screens.ts'
import { Search } from './search.tsx'

const GROUPS = ['Now', 'Surface', 'Operation'] as const
/** Age in milliseconds after which the live data is stale. */
const STALE = 10_000

function Connection() {
  const age = lastMessageAt.value === undefined ? 0 : clock.value - lastMessageAt.value
  if (connection.value === 'ended') {
    return (
      <span>
        <Dot tone="fault" /> Ended
      </span>
    )
  }
  if (connection.value === 'live' && age <= STALE) {
    return (
      <span class="tools">
        <Dot tone="good" /> Live
      </span>
    )
  }
  const text = age > STALE ? `Stale, ${duration(age)}` : 'Connecting'
  return (
    <span class="tools" role="status">
      <Dot tone="warn" /> {text}
    </span>
  )
}

/** The selection stays when the screen changes. */
function NodePicker() {
  const [query, change] = useQuery()
  const inUrl = query.get('node') ?? ''
  const selected = selectedNode.value
  const states = lastTick.value?.nodeStates
  useEffect(() => {
    if (inUrl !== '') selectedNode.value = inUrl
    else if (selected !== '') change({ node: selected })
  })
  if (states === undefined) {
    return (
      <span class="small muted">
        {me.value === undefined ? '' : <Text value={`node ${selected || me.value.node}`} most={60} />}
      </span>
    )
  }
  const choose = (node: string) => {
    selectedNode.value = node
    change({ node })
  }
  const isListed = selected === '' || states.some(({ name }) => name === selected)
  return (
    <select class="small" aria-label="Node" value={selected} onChange={event => choose(event.currentTarget.value)}>
      <option value="">All nodes ({states.length})</option>
      {!isListed && <option value={selected}>{visibleText(selected, 64)} (no response)</option>}
      {states.map(({ name, machine, state }) => (
        <option key={name} value={name}>
          {visibleText(name, 64)}, {visibleText(machine, 64)}
          {state === 'silent' && ' (no response)'}
        </option>
      ))}
    </select>
  )
}

function Navigation({ isOpen, onChoose }: { readonly isOpen: boolean; readonly onChoose: () => void }) {
  const [path] = useLocation()
  const shown = SCREENS.filter(screen => screen.path !== '/try' || me.value?.try === true)
  return (
    <nav id="navigation" class={isOpen ? 'side open' : 'side'} aria-label="Screens">
      {GROUPS.map(group => (
        <div key={group}>
          <h2>{group}</h2>
          <ul>
            {shown
              .filter(screen => screen.group === group)
              .map(screen => (
                <li key={screen.path}>
                  <Link href={screen.path} aria-current={path === screen.path ? 'page' : undefined} onClick={onChoose}>
                    {screen.title}
                  </Link>
                </li>
              ))}
          </ul>
        </div>
      ))}
    </nav>
  )
}

/** Loads the module of a screen, then shows it with its title focused. */
function Current({ screen, isFirst }: { readonly screen: Screen; readonly isFirst: boolean }) {
  const title = useRef<HTMLHeadingElement>(null)
  const [loaded, setLoaded] = useState<{ readonly screen: Screen; readonly View: ComponentType }>()
  const [failed, setFailed] = useState(false)

  useEffect(() => {
    document.title = `${screen.title} – Operator console`
    if (!isFirst) title.current?.focus()
    let isOver = false
    setFailed(false)
    screen.load().then(
      ({ default: View }) => !isOver && setLoaded({ screen, View }),
      () => !isOver && setFailed(true),
    )
    return () => {
      isOver = true
    }
  }, [screen, isFirst])

  const View = loaded?.screen === screen ? loaded.View : undefined
  return (
    <>
      <h1 ref={title} tabIndex={-1} class="screen-title">
        {screen.title}
      </h1>
      {failed && (
        <p class="note fault" role="alert">
          This screen could not be loaded. Reload the page.
        </p>
      )}
      {View ? <View /> : <Empty title={failed ? 'Not loaded' : 'Loading…'} />}
    </>
  )
}

export function Shell() {
  const [path] = useLocation()
  const [first] = useState(path)
  const [hasMoved, setMoved] = useState(false)
  const [isOpen, setOpen] = useState(false)
  useEffect(() => {
    if (path !== first) setMoved(true)
  }, [path, first])
  const screen = SCREENS.find(one => one.path === path)
  const server = me.value?.server

  return (
    <div class="frame">
      {/* A link would change the URL of the screen. */}
      <button type="button" class="skip" onClick={() => document.querySelector<HTMLElement>('main')?.focus()}>
        Skip to content
      </button>
      <header class="bar">
        <button
          type="button"
          class="menu-button"
          aria-expanded={isOpen}
          aria-controls="navigation"
          onClick={() => setOpen(!isOpen)}
        >
          Menu
        </button>
        <div class="brand">
          <span>
            {server === undefined ? 'Operator console' : <Text value={server.title ?? server.name} most={60} />}
          </span>
          <NodePicker />
        </div>
        <Search />
        <div class="state">
          <Connection />
          <button type="button" onClick={() => void logout()}>
            Log out
          </button>
        </div>
      </header>
      <Navigation isOpen={isOpen} onChoose={() => setOpen(false)} />
      <main id="content" tabIndex={-1}>
        {connection.value === 'ended' && (
          <p class="note fault" role="alert">
            <Text value={endReason.value} /> Start the host or log in again, then reload this page.
          </p>
        )}
        {screen ? (
          <Current screen={screen} isFirst={!hasMoved && path === first} />
        ) : (
          <Empty title="There is no such screen">
            <Link href="/">Open the overview</Link>
          </Empty>
        )}
      </main>
      <Toast />
    </div>
  )
}
