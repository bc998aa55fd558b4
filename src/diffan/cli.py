"""The command line: parse, call, write. Bad input ends with one sentence and exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Parameter

import diffan
from diffan.cli_discover import discover
from diffan.cli_options import Device, Json, Output, Quiet, Seed
from diffan.dag_files import dag_csv
from diffan.errors import DiffanError, InputError
from diffan.files import write_text
from diffan.printing import fail, print_json, say, scores, show_scores, without_output
from diffan.runfolder import load_dag

app = App(
    name="diffan",
    help="Causal discovery from a table: a causal graph, its order and the evidence for every edge.",
    version=diffan.__version__,
    suppress_keyboard_interrupt=False,  # `main` says what was left behind: nothing
)
app.command(discover)


@app.command
def simulate(
    *,
    output: Output,
    nodes: int = 20,
    edges: int | None = None,
    graph: Literal["er", "sf"] = "er",
    mechanism: Literal["gp", "additive-gp", "mlp", "linear", "sigmoid"] = "gp",
    noise: Literal["gauss", "exp", "laplace", "uniform", "gumbel"] = "gauss",
    noise_scale: tuple[float, float] = (0.4, 0.8),
    samples: int = 1000,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Simulate a table with a known graph: data.csv and truth.csv.

    Parameters
    ----------
    nodes
        Number of variables.
    edges
        Number of edges; as many as nodes when not given.
    graph
        er (Erdos-Renyi) or sf (scale-free).
    mechanism
        How a variable depends on its causes.
    noise
        Distribution of the additive noise.
    noise_scale
        Each variable's noise scale is uniform between these two.
    samples
        Number of rows.
    """
    dag = diffan.simulate.random_dag(nodes, nodes if edges is None else edges, graph=graph, seed=seed)
    frame = diffan.simulate.sample_anm(
        dag, samples, noise=noise, noise_scale=noise_scale, mechanism=mechanism, seed=seed
    )
    write_text(output / "truth.csv", dag_csv(dag))
    write_text(output / "data.csv", frame.to_csv(index=False))
    if as_json:
        print_json({"nodes": dag.n_nodes, "edges": dag.n_edges, "samples": samples, "folder": str(output)})
    elif not quiet:
        say(
            f"{dag.n_nodes} variables, {dag.n_edges} edges, {samples} rows in {output}/data.csv and truth.csv"
        )


@app.command
def evaluate(run: Path, /, *, truth: Path, as_json: Json = False) -> None:
    """Compare a discovered graph with the true one: SHD, SID, order divergence, F1.

    Parameters
    ----------
    run
        A run folder, its graph.json, or an adjacency.csv.
    truth
        Adjacency CSV with named rows (causes) and columns (effects), or a run folder.
    """
    show_scores(scores(truth, run), as_json)


@app.command
def report(
    run: Path,
    /,
    *,
    truth: Path | None = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    open_page: Annotated[bool, Parameter(name="--open", negative="")] = False,
    quiet: Quiet = False,
) -> None:
    """Rebuild the report page of a saved run; with a known truth, its edges are marked and scored.

    Parameters
    ----------
    run
        A run folder.
    truth
        Adjacency CSV with named rows (causes) and columns (effects), or a run folder.
    output
        File to write (report.html in the run folder when not given).
    open_page
        Show the page in the browser.
    """
    page = output or (run if run.is_dir() else run.parent) / "report.html"
    diffan.load(run).report(page, truth=None if truth is None else load_dag(truth))
    if not quiet:
        say(f"written {page}")
    if open_page:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


@app.command
def demo(
    *, output: Output = Path("demo"), seed: Seed = 0, device: Device = "auto", quiet: Quiet = False
) -> None:
    """Simulate a table of 10 variables, discover its graph, print the scores and write the report."""
    simulate(output=output / "simulated", nodes=10, samples=1000, seed=seed, quiet=quiet)
    discover(output / "simulated" / "data.csv", output=output / "run", seed=seed, device=device, quiet=quiet)
    report(output / "run", truth=output / "simulated" / "truth.csv", quiet=True)
    show_scores(scores(output / "simulated" / "truth.csv", output / "run"), as_json=False)


@app.command
def version(*, as_json: Json = False) -> None:
    """Print the versions of diffan and of what it computes with."""
    from diffan.versions import versions

    found = {"diffan": diffan.__version__, **versions()}
    if as_json:
        print_json(found)
    else:
        say("\n".join(f"{name} {number}" for name, number in found.items()))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 a computation failed, 2 bad input, 130 interrupted."""
    try:
        app(arguments, exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except CycloptsError as error:
        fail(str(error) or "the command could not be understood; see diffan --help", 2)
    except InputError as error:
        fail(str(error), 2)
    except DiffanError as error:
        fail(str(error), 1)
    except KeyboardInterrupt:
        kept = "--checkpoint" in (sys.argv if arguments is None else arguments)
        fail("interrupted; " + ("the checkpoint has the progress" if kept else "no result was written"), 130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        if error.errno is not None and error.filename is None:  # what is left to fail is standard output
            without_output()
            fail(f"cannot write to standard output: {error.strerror}", 1)
        raise
