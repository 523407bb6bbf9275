use super::*;

#[tokio::test(start_paused = true)]
async fn a_task_runs_for_its_time_and_its_effect_comes_with_its_end() {
    let provider = provider();
    let created = create(&provider, named("web")).await;
    let task = power(&provider, &created.id, PowerOp::On)
        .await
        .unwrap()
        .task;
    assert!(!status(&provider, created.task.clone()).await.done);
    assert_eq!(describe(&provider, &created.id).await.power_state, "Off");

    tokio::time::advance(TASK_TIME).await;
    assert!(status(&provider, created.task).await.done);
    assert!(
        !status(&provider, task.clone()).await.done,
        "a machine does one thing at a time"
    );

    tokio::time::advance(TASK_TIME).await;
    assert_eq!(
        status(&provider, task).await,
        pb::TaskStatusResponse {
            done: true,
            error: String::new()
        }
    );
    assert_eq!(describe(&provider, &created.id).await.power_state, "On");
}

#[tokio::test(start_paused = true)]
async fn creating_again_under_a_name_is_the_same_machine_and_the_same_task() {
    let provider = provider();
    let first = create(&provider, named("web")).await;
    assert_eq!(create(&provider, named("web")).await, first);
    tokio::time::advance(TASK_TIME).await;
    let third = create(&provider, named("web")).await;
    assert_eq!((third.id, third.task), (first.id.clone(), None));
    assert_ne!(create(&provider, named("db")).await.id, first.id);
    assert_eq!(provider.machines(), 2);
}

#[tokio::test(start_paused = true)]
async fn deleting_is_idempotent_and_frees_the_name() {
    let provider = provider();
    let created = create(&provider, named("web")).await;
    let task = delete(&provider, &created.id).await;
    assert!(task.is_some());
    assert_eq!(
        delete(&provider, &created.id).await,
        task,
        "the same deletion"
    );
    let busy = provider
        .create(Request::new(named("web")))
        .await
        .unwrap_err();
    assert_eq!(busy.code(), Code::Unavailable);

    tokio::time::advance(TASK_TIME * 2).await;
    assert!(status(&provider, task).await.done);
    assert!(!describe(&provider, &created.id).await.exists);
    assert_eq!(delete(&provider, &created.id).await, None);
    assert_ne!(create(&provider, named("web")).await.id, created.id);
}

#[tokio::test(start_paused = true)]
async fn work_that_turns_out_impossible_ends_its_task_with_an_error() {
    let provider = provider();
    let created = create(&provider, named("web")).await;
    let task = power(&provider, &created.id, PowerOp::Reboot)
        .await
        .unwrap()
        .task;
    tokio::time::advance(TASK_TIME * 2).await;
    let ended = status(&provider, task).await;
    assert!(ended.done);
    assert!(
        ended.error.contains("a reboot needs it to be on"),
        "{}",
        ended.error
    );
}

#[tokio::test]
async fn an_unknown_task_is_not_found_and_no_task_is_done() {
    let provider = provider();
    assert!(status(&provider, None).await.done);
    for id in ["task-77", "nonsense"] {
        let request = pb::TaskStatusRequest {
            task: Some(pb::TaskRef { id: id.to_owned() }),
        };
        let error = provider
            .task_status(Request::new(request))
            .await
            .unwrap_err();
        assert_eq!(error.code(), Code::NotFound);
    }
}
