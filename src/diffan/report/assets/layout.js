// The layered layout of layers.py, crossings.py, coordinates.py and layout.py, so that the page can redraw at any cutoff.
// A test in a browser holds both versions to the same places: change them together.
const LAYOUT = {
  passes: 4, small: 12, breadth: 1.2,
  sweeps: 24, patience: 6, swapRounds: 8, swapLimit: 1500,
  rounds: 30, nodeGap: 26, bendGap: 16, pulls: [1, 2, 8], stay: 0.05, straightenings: 2,
  nodeHeight: 30, layerGap: 46, mostGap: 300, aspect: 1.7, partGap: 44, aloneGap: 16, portGap: 13, portMargin: 9,
};

function layered(n, edges) {
  const level = levels(n, edges);
  const above = Array.from({ length: n }, () => []), below = Array.from({ length: n }, () => []);
  const chains = edges.map(([source, target]) => {
    const chain = [source];
    for (let between = level[source] + 1; between < level[target]; between++) {
      chain.push(level.length);
      level.push(between); above.push([]); below.push([]);
    }
    chain.push(target);
    for (let k = 1; k < chain.length; k++) {
      below[chain[k - 1]].push(chain[k]);
      above[chain[k]].push(chain[k - 1]);
    }
    return chain;
  });
  const found = { n, level, above, below, chains, layers: [] };
  found.layers = firstOrder(found);
  return found;
}

function levels(n, edges) {
  const parents = Array.from({ length: n }, () => []), children = Array.from({ length: n }, () => []);
  for (const [source, target] of edges) { parents[target].push(source); children[source].push(target); }
  const most = Math.max(LAYOUT.small, Math.ceil(LAYOUT.breadth * Math.sqrt(n)));
  const taken = new Map();
  const takeFrom = (one, step) => {
    while ((taken.get(one) || 0) >= most) one += step;
    taken.set(one, (taken.get(one) || 0) + 1);
    return one;
  };
  const level = new Array(n).fill(0);
  for (let v = 0; v < n; v++) level[v] = takeFrom(parents[v].reduce((top, p) => Math.max(top, level[p] + 1), 0), 1);
  for (let pass = 0; pass < LAYOUT.passes; pass++)
    for (let v = n - 1; v >= 0; v--)
      if (children[v].length > parents[v].length) {
        taken.set(level[v], taken.get(level[v]) - 1);
        level[v] = takeFrom(children[v].reduce((low, c) => Math.min(low, level[c]), Infinity) - 1, -1);
      }
  const lowest = level.reduce((a, b) => Math.min(a, b), Infinity);
  return level.map((one) => one - (n ? lowest : 0));
}

function firstOrder(found) {
  const depth = found.level.reduce((a, b) => Math.max(a, b), -1) + 1;
  const layers = Array.from({ length: depth }, () => []);
  const seen = new Array(found.level.length).fill(false);
  for (let start = 0; start < found.n; start++) {
    if (found.above[start].length) continue;
    const waiting = [start];
    while (waiting.length) {
      const vertex = waiting.pop();
      if (seen[vertex]) continue;
      seen[vertex] = true;
      layers[found.level[vertex]].push(vertex);
      for (let k = found.below[vertex].length - 1; k >= 0; k--) waiting.push(found.below[vertex][k]);
    }
  }
  return layers;
}

function reduceCrossings(found) {
  const copy = () => found.layers.map((layer) => layer.slice());
  let best = copy(), fewest = countCrossings(found), stale = 0;
  for (let sweep = 0; sweep < LAYOUT.sweeps && fewest > 0 && stale < LAYOUT.patience; sweep++) {
    sweepLayers(found, sweep % 2 === 0);
    const crossings = countCrossings(found);
    if (crossings < fewest) { best = copy(); fewest = crossings; stale = 0; } else stale++;
  }
  found.layers = best;
  if (fewest && found.level.length <= LAYOUT.swapLimit) swapNeighbours(found);
}

function places(found) {
  const place = new Array(found.level.length).fill(0);
  for (const layer of found.layers) layer.forEach((vertex, k) => { place[vertex] = k; });
  return place;
}

function countCrossings(found) {
  const place = places(found);
  let total = 0;
  for (let k = 0; k + 1 < found.layers.length; k++) {
    const n = found.layers[k + 1].length, tree = new Int32Array(n + 1);
    let seen = 0;
    for (const vertex of found.layers[k])
      for (const end of found.below[vertex].map((v) => place[v]).sort((a, b) => a - b)) {
        let atMost = 0;
        for (let at = end + 1; at > 0; at -= at & -at) atMost += tree[at];
        total += seen - atMost;
        for (let at = end + 1; at <= n; at += at & -at) tree[at]++;
        seen++;
      }
  }
  return total;
}

function sweepLayers(found, down) {
  const place = places(found), links = down ? found.above : found.below;
  const middle = new Float64Array(place.length);
  for (const layer of down ? found.layers : found.layers.slice().reverse()) {
    for (const v of layer)
      middle[v] = links[v].length ? links[v].reduce((sum, u) => sum + place[u], 0) / links[v].length : place[v];
    layer.sort((a, b) => middle[a] - middle[b]);
    layer.forEach((vertex, k) => { place[vertex] = k; });
  }
}

function swapNeighbours(found) {
  const place = places(found);
  const gain = (left, right) => {
    let sum = 0;
    for (const links of [found.above, found.below])
      for (const u of links[left]) for (const v of links[right]) sum += Math.sign(place[u] - place[v]);
    return sum;
  };
  for (let round = 0, improved = true; improved && round < LAYOUT.swapRounds; round++) {
    improved = false;
    for (const layer of found.layers)
      for (let k = 0; k + 1 < layer.length; k++) {
        const left = layer[k], right = layer[k + 1];
        if (gain(left, right) > 0) {
          layer[k] = right; layer[k + 1] = left;
          place[left] = k + 1; place[right] = k;
          improved = true;
        }
      }
  }
}

function distanceBetween(found, widths, a, b) {
  const half = (v) => (v >= found.n ? 0 : widths[v] / 2);
  return half(a) + half(b) + (a >= found.n || b >= found.n ? LAYOUT.bendGap : LAYOUT.nodeGap);
}

function horizontal(found, widths) {
  const x = new Array(found.level.length).fill(0);
  const distance = (a, b) => distanceBetween(found, widths, a, b);
  for (const layer of found.layers) {
    let reach = 0;
    layer.forEach((vertex, k) => { if (k) reach += distance(layer[k - 1], vertex); x[vertex] = reach; });
    for (const vertex of layer) x[vertex] -= reach / 2;
  }
  for (let turn = 0; turn < LAYOUT.rounds; turn++) {
    const both = turn >= LAYOUT.rounds - 6, down = turn % 2 === 0;
    for (const layer of down ? found.layers : found.layers.slice().reverse())
      settle(found, x, layer, distance, both || down, both || !down);
  }
  straighten(found, x, distance);
  return x;
}

function settle(found, x, layer, distance, up, down) {
  const pools = [], shift = [0];
  layer.forEach((vertex, k) => {
    let total = LAYOUT.stay * x[vertex], pull = LAYOUT.stay;
    for (const [links, used] of [[found.above[vertex], up], [found.below[vertex], down]])
      for (const other of used ? links : []) {
        const strength = LAYOUT.pulls[(vertex >= found.n) + (other >= found.n)];
        total += strength * x[other];
        pull += strength;
      }
    if (k) shift.push(shift[k - 1] + distance(layer[k - 1], vertex));
    let mean = total / pull - shift[k], weight = pull, count = 1;
    while (pools.length && pools[pools.length - 1][0] > mean) {
      const [other, more, n] = pools.pop();
      mean = (mean * weight + other * more) / (weight + more);
      weight += more;
      count += n;
    }
    pools.push([mean, weight, count]);
  });
  let k = 0;
  for (const [mean, , count] of pools) for (let c = 0; c < count; c++, k++) x[layer[k]] = mean + shift[k];
}

function straighten(found, x, distance) {
  const left = new Map(), right = new Map();
  for (const layer of found.layers)
    for (let k = 1; k < layer.length; k++) { left.set(layer[k], layer[k - 1]); right.set(layer[k - 1], layer[k]); }
  const align = (line, low, high) => {
    if (low > high) return;
    const middle = line.reduce((sum, v) => sum + x[v], 0) / Math.max(line.length, 1);
    for (const v of line) x[v] = Math.min(Math.max(middle, low), high);
  };
  for (let time = 0; time < LAYOUT.straightenings; time++)
    for (const chain of found.chains) {
      let line = [], low = -Infinity, high = Infinity;
      for (const v of chain.slice(1, -1)) {
        const least = left.has(v) ? x[left.get(v)] + distance(left.get(v), v) : -Infinity;
        const most = right.has(v) ? x[right.get(v)] - distance(v, right.get(v)) : Infinity;
        if (line.length && Math.max(low, least) > Math.min(high, most)) {
          align(line, low, high);
          line = []; low = -Infinity; high = Infinity;
        }
        line.push(v);
        low = Math.max(low, least);
        high = Math.min(high, most);
      }
      align(line, low, high);
    }
}

function components(n, edges) {
  const root = Array.from({ length: n }, (_, k) => k);
  const find = (v) => { while (root[v] !== v) { root[v] = root[root[v]]; v = root[v]; } return v; };
  for (const [source, target] of edges) {
    const a = find(source), b = find(target);
    root[Math.max(a, b)] = Math.min(a, b);
  }
  const parts = new Map();
  for (let v = 0; v < n; v++) {
    const key = find(v);
    if (!parts.has(key)) parts.set(key, { nodes: [], members: [] });
    parts.get(key).nodes.push(v);
  }
  edges.forEach(([source], k) => parts.get(find(source)).members.push(k));
  return [...parts.values()];
}

function layOutPart({ nodes, members }, widths, edges) {
  const L = LAYOUT, local = new Map(nodes.map((node, k) => [node, k]));
  const found = layered(nodes.length, members.map((e) => [local.get(edges[e][0]), local.get(edges[e][1])]));
  reduceCrossings(found);
  const own = nodes.map((node) => widths[node]);
  let x = horizontal(found, own);
  const half = (v) => (v >= found.n ? 4 : own[v] / 2);
  const left = x.reduce((low, at, v) => Math.min(low, at - half(v)), Infinity);
  const width = x.reduce((high, at, v) => Math.max(high, at + half(v)), -Infinity) - left;
  x = x.map((at) => at - left);
  const count = found.layers.length;
  const wanted = count > 1 ? (width / L.aspect - count * L.nodeHeight) / (count - 1) : 0;
  const gap = count > 1 ? Math.min(Math.max(wanted, L.layerGap), L.mostGap) : 0;
  const y = found.level.map((level) => L.nodeHeight / 2 + level * (L.nodeHeight + gap));
  const height = count * L.nodeHeight + (count - 1) * gap;
  return { nodes, members, x, y, width, height, routes: routesOf(found, own, x, y) };
}

function routesOf(found, widths, x, y) {
  const half = LAYOUT.nodeHeight / 2, leaving = ports(found, widths, x, true), arriving = ports(found, widths, x, false);
  return found.chains.map((chain, k) => {
    const route = [[leaving[k], y[chain[0]] + half]];
    for (const bend of chain.slice(1, -1)) route.push([x[bend], y[bend] - half], [x[bend], y[bend] + half]);
    route.push([arriving[k], y[chain[chain.length - 1]] - half]);
    return route;
  });
}

function ports(found, widths, x, leaving) {
  const touching = new Map(), at = new Array(found.chains.length).fill(0);
  found.chains.forEach((chain, k) => {
    const node = leaving ? chain[0] : chain[chain.length - 1];
    if (!touching.has(node)) touching.set(node, []);
    touching.get(node).push(k);
  });
  const other = (k) => { const chain = found.chains[k]; return x[leaving ? chain[1] : chain[chain.length - 2]]; };
  for (const [node, members] of touching) {
    members.sort((a, b) => other(a) - other(b) || a - b);
    const room = Math.max(widths[node] - 2 * LAYOUT.portMargin, 0);
    const step = Math.min(LAYOUT.portGap, room / Math.max(members.length - 1, 1));
    members.forEach((k, place) => { at[k] = x[node] + (place - (members.length - 1) / 2) * step; });
  }
  return at;
}

function placeGraph(widths, edges) {
  const L = LAYOUT, found = components(widths.length, edges), alone = found.filter((c) => !c.members.length).map((c) => c.nodes[0]);
  const parts = found.filter((c) => c.members.length).map((part) => layOutPart(part, widths, edges));
  parts.sort((a, b) => b.height - a.height || b.width - a.width || a.nodes[0] - b.nodes[0]);
  const area = parts.reduce((sum, part) => sum + (part.width + L.partGap) * (part.height + L.partGap), 0)
    + alone.reduce((sum, node) => sum + (widths[node] + L.nodeGap) * (L.nodeHeight + L.aloneGap), 0);
  const rowWidth = parts.reduce((most, part) => Math.max(most, part.width), Math.sqrt(area * L.aspect));
  const x = new Array(widths.length).fill(0), y = x.slice(), routes = new Array(edges.length);
  let left = 0, top = 0, rowHeight = 0, width = 0;
  for (const part of parts) {
    if (left > 0 && left + part.width > rowWidth) { left = 0; top += rowHeight + L.partGap; rowHeight = 0; }
    part.nodes.forEach((node, k) => { x[node] = left + part.x[k]; y[node] = top + part.y[k]; });
    part.members.forEach((edge, k) => { routes[edge] = part.routes[k].map(([px, py]) => [left + px, top + py]); });
    width = Math.max(width, left + part.width);
    left += part.width + L.partGap;
    rowHeight = Math.max(rowHeight, part.height);
  }
  let height = top + rowHeight;
  top = height + (parts.length ? L.partGap : 0);
  left = 0;
  for (const node of alone) {
    if (left > 0 && left + widths[node] > rowWidth) { left = 0; top += L.nodeHeight + L.aloneGap; }
    x[node] = left + widths[node] / 2;
    y[node] = top + L.nodeHeight / 2;
    width = Math.max(width, left + widths[node]);
    height = top + L.nodeHeight;
    left += widths[node] + L.nodeGap;
  }
  return { x, y, routes, width, height };
}
